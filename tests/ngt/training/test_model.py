"""Tests of what a reward model may have, log and feed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ngt.agent.streams import Draw, Streams
from ngt.bench.cases import random_batch
from ngt.errors import UserError
from ngt.reward import Batch, NoParams, RewardModel, Spec
from ngt.training.model import check_metric, check_packed, fed

SPEC = Spec(3, 2, "state-action", 8, (0, 1), 100, 4, 0.99)


class Toy(RewardModel):
    """A model for two runs, with one weight per run."""

    Config = NoParams

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__(config, spec)
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.fixed = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.learn_with(0.1)


def odd(kind: str) -> RewardModel:
    """Return a model for two runs with one thing that can't be saved or trained per run."""
    model = Toy(NoParams(), SPEC)
    if kind == "scalar":
        model.register_buffer("odd", torch.zeros(()))
    elif kind == "vector":
        model.register_buffer("odd", torch.zeros(5))
    elif kind == "constant":
        model.register_buffer("odd", torch.zeros(5), persistent=False)
    elif kind == "groups":
        model.optimiser = torch.optim.Adam([{"params": [p]} for p in (model.weight, model.fixed)])
    elif kind == "amsgrad":
        model.optimiser = torch.optim.Adam([model.weight], amsgrad=True)
    else:
        model.optimiser = getattr(torch.optim, kind)([model.weight], lr=0.1)
    return model


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("scalar", r"Toy.odd: has shape \(\), but must have one entry per run, \(2, ...\)"),
        ("vector", r"Toy.odd: has shape \(5,\), but must have one entry per run"),
        ("SGD", "Toy.optimiser: found SGD, but only Adam with one parameter group"),
        ("AdamW", "Toy.optimiser: found AdamW, but only Adam"),
        ("groups", "Toy.optimiser: found Adam, but only Adam with one parameter group"),
        ("amsgrad", "without amsgrad can be trained per run; use `learn_with"),
    ],
)
def test_what_can_t_be_trained_per_run_is_refused(kind: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_packed(odd(kind), 2)


@pytest.mark.parametrize("kind", ["constant", "Adam"])
def test_what_can_be_trained_per_run_is_accepted(kind: str) -> None:
    check_packed(odd(kind), 2)


def test_a_model_that_learns_needs_an_optimiser() -> None:
    model = Toy(NoParams(), SPEC)
    del model.optimiser
    with pytest.raises(UserError, match=r"Toy: has no optimiser; call self.learn_with\(lr\)"):
        check_packed(model, 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step", torch.zeros(2), r"Toy.metrics\['step'\]: the suite itself logs 'step' in train.c"),
        ("reward", torch.zeros(2), "the suite itself logs 'reward'"),
        (
            "x",
            torch.zeros(()),
            r"found a tensor of shape \(\), expected a detached tensor of shape",
        ),
        ("x", torch.zeros(2, 8), r"found a tensor of shape \(2, 8\), expected"),
        ("x", torch.zeros(2, requires_grad=True), r"of shape \(2,\) with a gradient, expected"),
        ("x", 1.0, "found float, expected a detached tensor"),
    ],
)
def test_a_metric_that_can_t_be_logged_is_refused(name: str, value: Any, message: str) -> None:
    model = Toy(NoParams(), SPEC)
    check_metric(model, "x", torch.zeros(2), 2)
    with pytest.raises(UserError, match=message):
        check_metric(model, name, value, 2, ["reward"])


def test_the_batch_of_feed_has_as_many_rows_as_given() -> None:
    class Short(Toy):
        def feed(self, agent: Batch, expert: Batch) -> Batch:
            return Batch(*(x[:, :5] for x in agent))

    batch = random_batch(2, 8, 3, 2)
    assert fed(Toy(NoParams(), SPEC), batch, batch) is batch
    with pytest.raises(
        UserError, match=r"Short.feed\(\): found .* \(2, 5, 3\), expected \(2, 8, 3"
    ):
        fed(Short(NoParams(), SPEC), batch, batch)


def test_an_unknown_kind_of_draw_is_refused() -> None:
    draws: Any = {"mine": Draw("gaussian", (2,))}  # type: ignore[arg-type]
    with pytest.raises(UserError, match="'mine' has the kind 'gaussian'; use one of normal, unif"):
        Streams([0], draws)
