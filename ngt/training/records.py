"""Records of runs that train together (a pack): measurements, policies and training times."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ngt.experience.rollout import Rollout
from ngt.runs.writer import RunWriter
from ngt.settings.config import CellConfig
from ngt.state import State
from ngt.training.learner import Learner, Member


class Records:
    """The measurements and policies of the runs of a pack, written to each run's folder."""

    def __init__(self, cell: CellConfig, members: Sequence[Member], learner: Learner) -> None:
        self.cell, self.members, self.learner = cell, list(members), learner
        self.writers = [RunWriter(m.folder, m.key, cell) for m in members]
        self.kept = [State()] * len(members)  # each run's best policy so far, if `keep` is "best"
        self.evaluations = 0
        self.timing: list[tuple[int, float]] = []  # (step, seconds of training so far)
        self.start = time.monotonic()  # start of training, moved forward by the length of pauses

    def seconds(self) -> float:
        """Return the seconds of training so far, without pauses."""
        return time.monotonic() - self.start

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time in this block, such as an evaluation, from the training time."""
        start = time.monotonic()
        yield
        self.start += time.monotonic() - start

    def log(self, run: int, step: int, metrics: Mapping[str, NDArray[np.float64]]) -> None:
        """Write one run's values of the metrics as a row of its train.csv."""
        self.writers[run].training(
            {
                "step": step,
                "update": self.learner.updates,
                **{name: float(values[run]) for name, values in metrics.items()},
            }
        )

    def evaluated(self, run: int, step: int, result: Rollout) -> None:
        """Write a run's evaluation to its eval.csv; keep the policy if it is the best so far."""
        returns = result.returns[run]
        self.writers[run].evaluation(step, returns.tolist(), result.lengths[run].tolist())
        mean, best = float(returns.mean()), self.kept[run].data.get("return", -math.inf)
        if self.cell.train.keep == "best" and mean > best:
            self.kept[run] = State(
                self.learner.policy.snapshot(run), {"step": step, "return": mean}
            )

    def finish(self, run: int, step: int, broken: str | None = None) -> None:
        """Write a run's policy and its run.json, after which the run is complete.

        broken: the name of the non-finite tensor if the run diverged, otherwise None.
        """
        kept, seconds, learner = self.kept[run], self.seconds(), self.learner
        self.writers[run].finish(
            dict(kept.tensors) or learner.policy.snapshot(run),
            {
                "status": "diverged" if broken else "finished",
                "step": step,
                **({"tensor": broken} if broken else {}),
                **({"kept": kept.data} if kept.data else {}),
                "updates": learner.updates,
                "pack": learner.runs,
                "device": str(learner.device),
                "reference": dict(self.members[run].reference or {}),
                "train_seconds": round(seconds, 1),
                "steps_per_second": round(step / max(seconds, 1e-9), 1),
                "timing": self.timing,
            },
        )

    def state(self, run: int) -> State:
        """Return the state of one run's records, including its best policy if that is kept."""
        return self.writers[run].state() | State(
            self.kept[run].tensors,
            {
                "evaluations": self.evaluations,
                "timing": self.timing,
                "train_seconds": round(self.seconds(), 3),
                "kept": self.kept[run].data,
            },
        )

    def restore(self, states: Sequence[State]) -> None:
        """Restore the records of all runs."""
        for writer, state in zip(self.writers, states, strict=True):
            writer.restore(state)
        self.kept = [State(state.tensors, dict(state.data["kept"])) for state in states]
        data = states[0].data
        self.evaluations, self.timing = data["evaluations"], list(map(tuple, data["timing"]))
        self.start -= data["train_seconds"]
