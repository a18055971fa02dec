"""Tests of CUDA graphs: replaying a step gives the same numbers as running it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_replays_see_new_inputs_and_every_call_is_one_step() -> None:
    from ngt.training.graphs import Graph

    x, total = torch.zeros(3, device="cuda"), torch.zeros(3, device="cuda")

    def add() -> None:
        total.add_(x)

    step = Graph(add, warmup=2)
    for value in range(6):
        x.fill_(value)
        step()
    assert total.tolist() == [15.0] * 3
    assert step.graph is not None


@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("ngt.potential:Potential", {}),
        ("ngt.potential:Potential", {"pairing": "mse_softmax"}),
        ("ngt.potential:Potential", {"pairing": "hl_gauss"}),
        ("ngt.reward:EnvReward", {}),
        ("baselines.dac:Dac", {}),
        ("baselines.dac:Dac", {"form": "softplus", "absorbing": True}),
        ("baselines.wdac:Wdac", {}),
        ("baselines.mmd:MmdDac", {}),
        ("baselines.red:Red", {}),
        ("baselines.diffail:DiffAil", {}),
        ("ngt.potential:Potential", {"scaling": "ema_signed", "squash": False}),
    ],
)
@pytest.mark.parametrize("normalise", [False, True])
def test_graph_eager_and_cpu_agree(model: str, params: dict, normalise: bool) -> None:
    from ngt.bench.cases import random_batch
    from ngt.experience.replay import Replay
    from ngt.settings.config import CellConfig
    from ngt.training.learner import Learner, Member

    cell = CellConfig(
        env="HalfCheetah-v4", method="m", model=model, params=params, normalise_obs=normalise
    )
    made = []
    for device, graphs in (("cpu", False), ("cuda", False), ("cuda", True)):
        members = [Member(Path(), {}, s, 1, random_batch(1, 50 + s, 17, 6)) for s in range(3)]
        learner = Learner(cell, members, device, graphs=graphs)
        replay = Replay(3, 500, 17, 6, device)
        batch = random_batch(3, 400, 17, 6)
        replay.add(type(batch)(*(x.to(device) for x in batch)))
        made.append((learner, replay))
    for update in range(1, 13):
        for learner, replay in made:
            learner.update(replay)
        if update == 6:  # fill the buffer further after the capture, and read the log
            batch = random_batch(3, 60, 17, 6)
            for learner, replay in made:
                replay.add(type(batch)(*(x.to(learner.device) for x in batch)))
                learner.drain()
    cpu, eager, graph = (learner for learner, _ in made)
    assert graph.graph is not None and graph.graph.graph is not None
    for name, value in eager.agent.state_dict().items():
        assert torch.equal(value, graph.agent.state_dict()[name]), name
        # Compare means, because Adam turns the rounding of a near-zero gradient into a whole step.
        gap = (value.cpu() - cpu.agent.state_dict()[name]).abs().mean()
        assert gap < 1e-4, f"{name} is off by {gap:.1e} in the mean"
    e, g, c = eager.drain(), graph.drain(), cpu.drain()
    assert e.keys() == g.keys() == c.keys()
    for name in e:
        assert e[name].tolist() == g[name].tolist(), name
        assert e[name].tolist() == pytest.approx(c[name].tolist(), rel=5e-2, abs=5e-2), name


def test_training_on_cuda_with_and_without_graphs_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check equal results while the table of final observations grows, which needs new captures."""
    from ngt.bench.cases import random_batch
    from ngt.experience import replay
    from ngt.settings.config import CellConfig, SacConfig, TrainConfig
    from ngt.training.learner import Member
    from ngt.training.trainer import Trainer

    monkeypatch.setattr(replay, "SLOTS", 1)
    cell = CellConfig(
        env="Hopper-v4",
        method="m",
        model="ngt.potential:Potential",
        normalise_obs=True,
        sac=SacConfig(hidden=(32, 32)),
        params={"hidden": [32, 32], "m": 4},
        train=TrainConfig(
            steps=600, batch=32, buffer=400, eval_every=200, eval_episodes=2, log_every=200
        ),
    )
    texts = []
    for name, graphs in (("eager", False), ("graph", True)):
        members = [
            Member(tmp_path / name / str(s), {}, s, 1, random_batch(1, 50, 11, 3)) for s in (0, 1)
        ]
        trainer = Trainer(cell, members, device="cuda", graphs=graphs)
        trainer.run(name)
        assert trainer.collector is not None and trainer.collector.replay.slots >= 8
        texts.append([(m.folder / "eval.csv").read_text() for m in members])
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[0][1]
