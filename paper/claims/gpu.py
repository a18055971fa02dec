"""Rules that judge the paper's claims about CUDA graphs, GPU memory and training hours.

The rules use the measurements that `make gpu-check` writes. The paper's machine has one RTX 4090.
Measurements on a different GPU are shown but not compared with the paper, except for the speed-up
from CUDA graphs. Measurements made with a different version of the code are shown without a
verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ngt.runs.provenance import source_hash
from paper.claims.checks import Check
from paper.claims.timing import TimingRule
from paper.claims.verdicts import Evidence, Outcome, Verdict

GRAPHS = (2.5, 3.5)  # speed-ups in this range round to the paper's factor of 3
CARD = "RTX 4090"  # the paper's GPU
CARD_GIB = 24
CARD_GB = CARD_GIB * 2**30 / 1e9  # memory of the paper's GPU, in GB as in the measurements
HOURS = 5.0  # the paper's training time on HUMANOID, in hours
HUMANOID = "Humanoid-v4"
# The claim about memory covers all methods listed here.
METHODS = ("ngt", "pwil", "dac-r", "wdac", "mmd-dac", "red", "diffail")
FEWER = {("diffail", HUMANOID): 1_000_000}  # transitions that the paper takes off the whole buffer

_FILE = "results/published/gpu.json"
Row = Mapping[str, Any]


def _outcome(
    e: Evidence,
    checks: Sequence[Check],
    *,
    comparable: bool,
    ours: str = "",
    instead: Verdict | None = None,
) -> Outcome:
    """Return the outcome of checks on the measurements.

    comparable: True if measurements on any GPU can be compared with the paper's measurements, False
    if only measurements on the paper's GPU can.
    ours: text to show instead of the checks.
    instead: a verdict to use instead of the checks' verdict.
    """
    assert e.gpu is not None
    source = e.gpu.get("source")
    on = e.gpu["device"]
    if source != source_hash():
        on += f", other code: source {source or 'not recorded'}"
        instead = "no verdict"
    elif not comparable and CARD not in on:
        instead = "measured, not comparable"
    return Outcome(checks, bool(checks), ours=ours, on=on, instead=instead)


def _alone(e: Evidence, section: str) -> list[Row]:
    """Return those measurements in a section that are for a single run, not for a pack.

    A pack is a group of runs that are trained together. Return an empty list if the section is
    missing.

    section: the name of a section in the file that `make gpu-check` writes.
    """
    return [row for row in (e.gpu or {}).get(section, ()) if row.get("pack", 1) == 1]


def _name(row: Row) -> str:
    return f"{row['model']} on {row['env']}"


def _judge_graphs(e: Evidence) -> Outcome:
    """Judge by how much CUDA graphs speed up whole training runs.

    If no run was measured both with and without CUDA graphs, show the speed-up of single updates.
    """
    eager, graph = ({_name(r): r["env_steps_per_second"] for r in _alone(e, "training")
                     if r.get("graphs", True) is on} for on in (False, True))  # fmt: skip
    ratios = {name: graph[name] / eager[name] for name in eager.keys() & graph.keys()}
    if ratios:
        name = max(ratios, key=lambda n: ratios[n])
        most, (low, high) = ratios[name], GRAPHS
        check = Check(name, f"{most:.1f} times", most - low)
        exceeds: Verdict | None = "exceeds" if most >= high else None
        return _outcome(e, [check], comparable=True, instead=exceeds)
    updates = [row["eager_ms"] / row["graph_ms"] for row in _alone(e, "rates")]
    if not updates:
        return Outcome([], decides=False)
    ours = f"single updates: {min(updates):.1f} to {max(updates):.1f} times; no whole run measured"
    return _outcome(e, [Check("", "", float("nan"))], comparable=True, ours=ours)


def _judge_memory(e: Evidence) -> Outcome:
    """Judge every method's peak memory, measured with a replay buffer of the paper's size.

    Every method must be measured on HUMANOID, whose runs take the most memory.
    """
    size = e.paper.train.buffer
    rows = _alone(e, "memory")
    whole = [r for r in rows if r["buffer"] == size - FEWER.get((r["model"], r["env"]), 0)]
    checks = [
        Check(_name(row), f"{row['memory_gb']:.1f} GB", CARD_GB - row["memory_gb"]) for row in whole
    ]
    found = {row["model"] for row in whole if row["env"] == HUMANOID}
    lacking = [method for method in METHODS if method not in found]
    if not lacking:
        return _outcome(e, checks, comparable=False)
    shown = whole or _alone(e, "rates")
    if not shown:
        return Outcome([], decides=False)
    most = max(shown, key=lambda row: float(row["memory_gb"]))
    buffer = "" if whole else f", its buffer {most['buffer_gb']:.1f} GB"
    ours = (
        f"{_name(most)}: {most['memory_gb']:.1f} GB{buffer}; not measured on {HUMANOID} with the "
        f"paper's buffer: "
    )
    unknown = Check("", "", float("nan"))
    return _outcome(e, [unknown], comparable=False, ours=ours + ", ".join(lacking))


def _judge_hours(e: Evidence) -> Outcome:
    rows = [
        row
        for row in _alone(e, "training")
        if (row["model"], row["env"]) == ("NGT", HUMANOID) and row.get("graphs", True)
    ]
    if not rows:
        return Outcome([], decides=False)
    took = e.paper.train.steps / rows[0]["env_steps_per_second"] / 3600
    return _outcome(e, [Check("", f"{took:.1f} h", HOURS - took)], comparable=False)


GRAPHS_RULE = TimingRule(
    f"largest speed-up of a whole training run by graphs: {GRAPHS[0]:g} to {GRAPHS[1]:g}; above "
    f"that, “exceeds” ({_FILE})",
    _judge_graphs,
    artefact="",
)
MEMORY_RULE = TimingRule(
    f"measured peak with the paper's buffer (of DiffAIL on Humanoid, 1M smaller) ≤ {CARD_GIB} GiB "
    f"({CARD_GB:.1f} GB), for every method; on one {CARD} ({_FILE})",
    _judge_memory,
    artefact="",
)
HOURS_RULE = TimingRule(
    f"10⁷ env steps in ≤ {HOURS:g} h at the rate of NGT alone, on one {CARD} ({_FILE})",
    _judge_hours,
    artefact="",
)
