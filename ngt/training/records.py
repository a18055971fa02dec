"""The records of a pack, i.e. of runs that train together: measurements, policies and times."""

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
    """The measurements and policies of a pack's runs, which are written to the runs' folders."""

    def __init__(self, cell: CellConfig, members: Sequence[Member], learner: Learner) -> None:
        self.cell, self.members, self.learner = cell, list(members), learner
        self.writers = [RunWriter(m.folder, m.key, cell) for m in members]
        self.kept = [State()] * len(members)  # each run's best policy so far, if `keep` is "best"
        self.evaluations = 0
        # For each run, (step, seconds of training up to this step). Runs that resume together may
        # have been trained apart.
        self.timing: list[list[tuple[int, float]]] = [[] for _ in members]
        self.before = [0.0] * len(members)  # seconds of each run's training until it resumed
        self.start = time.monotonic()  # start of training, moved forward by the duration of pauses

    def seconds(self, run: int) -> float:
        """Return the seconds of a run's training so far, excluding pauses."""
        return self.before[run] + time.monotonic() - self.start

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time spent in this context, such as an evaluation, from the training time."""
        start = time.monotonic()
        yield
        self.start += time.monotonic() - start

    def log(self, run: int, step: int, metrics: Mapping[str, NDArray[np.float64]]) -> None:
        """Append a row with one run's metrics to the run's train.csv, and the run's time so far."""
        self.timing[run].append((step, round(self.seconds(run), 3)))
        self.writers[run].training(
            {
                "step": step,
                "update": self.learner.updates,
                **{name: float(values[run]) for name, values in metrics.items()},
            }
        )

    def evaluated(self, run: int, step: int, result: Rollout) -> None:
        """Append a run's evaluation to its eval.csv.

        If the `keep` setting is "best", also keep the policy if it is the best so far.
        """
        returns = result.returns[run]
        self.writers[run].evaluation(step, returns.tolist(), result.lengths[run].tolist())
        mean, best = float(returns.mean()), self.kept[run].data.get("return", -math.inf)
        if self.cell.train.keep == "best" and mean > best:
            self.kept[run] = State(
                self.learner.policy.snapshot(run), {"step": step, "return": mean}
            )

    def finish(self, run: int, step: int, broken: str | None = None) -> None:
        """Write a run's policy and its run.json. The run is then complete.

        broken: the name of the non-finite tensor if the run diverged, otherwise None.
        """
        kept, seconds, learner = self.kept[run], self.seconds(run), self.learner
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
                "timing": self.timing[run],
            },
        )

    def state(self, run: int) -> State:
        """Return the state of one run's records, including its best policy if there is one."""
        return self.writers[run].state() | State(
            self.kept[run].tensors,
            {
                "evaluations": self.evaluations,
                "timing": self.timing[run],
                "train_seconds": round(self.seconds(run), 3),
                "kept": self.kept[run].data,
            },
        )

    def restore(self, states: Sequence[State]) -> None:
        """Restore the records of all runs."""
        for writer, state in zip(self.writers, states, strict=True):
            writer.restore(state)
        self.kept = [State(state.tensors, dict(state.data["kept"])) for state in states]
        self.evaluations = states[0].data["evaluations"]
        self.timing = [list(map(tuple, state.data["timing"])) for state in states]
        self.before = [state.data["train_seconds"] for state in states]
