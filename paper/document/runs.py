"""Facts about the runs for the reports.

These are the number of runs, their training times, and the code and machines that made them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ngt.runs.keys import RunKey, run_table
from ngt.runs.status import STATUSES, Status
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.drawing.table import Cell, Column, Table
from paper.register import FIGURES, TABLES
from paper.words import yes_or_no

UNKNOWN = "not recorded"  # shown for a field that a run's run.json lacks

MEANING = {
    "finished": "",
    "diverged": "a number was not finite; the run counts with its last value",
    "stale": "trained with other settings or demonstrations",
    "damaged": "was complete, but a file has changed since",
    "part": "started but not finished",
    "missing": "",
}

Record = Mapping[str, Any]  # the content of a run's run.json


class Fact(NamedTuple):
    """A named fact about the runs. The report shows some facts as warnings."""

    name: str
    text: str
    warning: bool = False


def tables(config: Config, runs: Runs) -> dict[str, Table]:
    """Return the tables about the runs, by name. Tables without rows are left out."""
    found = {
        "counts": counts(config, runs.statuses),
        "incomplete": incomplete(runs.statuses),
        "sources": sources(runs),
        "machines": machines(runs.records),
        "times": times(config, runs.records),
    }
    return {name: table for name, table in found.items() if table.rows}


def counts(config: Config, statuses: Mapping[RunKey, Status]) -> Table:
    """Return a table of the number of runs by artefact (figure or table) and status.

    If several artefacts show a run, the run counts in the row of each artefact, but only once in
    the last row.
    """
    titles = {a.name: a.title for a in (*TABLES.values(), *FIGURES.values())}
    groups = {
        titles.get(name, name): run_table(config, [name], beside=True) for name in config.figures
    }
    groups["all, each once"] = list(statuses)
    rows: list[dict[str, Cell]] = []
    for title, keys in groups.items():
        found = Counter(statuses[key].status for key in keys)
        rows.append(
            {"artefact": title, "runs": len(keys), **{name: found[name] for name in STATUSES}}
        )
    columns = {name: Column(name) for name in ("artefact", "runs", *STATUSES)}
    notes = [f"{name}: {text}." for name, text in MEANING.items() if text]
    return Table("Runs by artefact", columns, rows, notes)


def incomplete(statuses: Mapping[RunKey, Status]) -> Table:
    """Return a table of the runs that are not finished."""
    rows: list[dict[str, Cell]] = [
        {"run": str(key), "status": status.status, "note": status.note}
        for key, status in statuses.items()
        if status.status != "finished"
    ]
    columns = {name: Column(name) for name in ("run", "status", "note")}
    return Table("Runs that are not finished", columns, rows)


def _tally(records: Sequence[Record], fields: Sequence[str]) -> list[dict[str, Cell]]:
    """Return one row per combination of values of `fields`, with the number of such records.

    The most frequent combination comes first.
    """
    found = Counter(tuple(_text(record.get(field)) for field in fields) for record in records)
    return [
        {**dict(zip(fields, values, strict=True)), "runs": n} for values, n in found.most_common()
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return yes_or_no(value)
    return UNKNOWN if value is None else str(value)


def sources(runs: Runs) -> Table:
    """Return a table of the code versions that made the runs, by method."""
    records = [
        {**record, "method": key.method, "here": not runs.statuses[key].other_source}
        for key, record in runs.records.items()
    ]
    columns = {
        "method": Column("method"),
        "source_hash": Column("source hash"),
        "here": Column("same as here"),
        "commit": Column("commit"),
        "dirty": Column("uncommitted changes"),
        "runs": Column("runs"),
    }
    rows = _tally(records, [name for name in columns if name != "runs"])
    note = (
        "The hash covers the code that decides the numbers of a method's runs. A commit that "
        "changes none of that code does not change the hash."
    )
    return Table("Code that made the runs", columns, rows, [note])


def machines(records: Mapping[RunKey, Record]) -> Table:
    """Return a table of the machines and library versions that made the runs."""
    flat = [{**r, **(r.get("versions") or {})} for r in records.values()]
    libraries = dict.fromkeys(name for r in records.values() for name in r.get("versions") or ())
    gpu = ["gpu"] if any("gpu" in r for r in flat) else []
    fields = ("machine", "device", *gpu, "threads", "python", *libraries)
    widths = {"machine": 0.2, "device": 0.12}
    columns = {name: Column(name, width=widths.get(name)) for name in (*fields, "runs")}
    return Table("Machines and versions", columns, _tally(flat, fields))


def times(config: Config, records: Mapping[RunKey, Record]) -> Table:
    """Return a table of each method's training time on each env."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for key, record in records.items():
        cells.setdefault((key.env, key.method), []).append(record)
    rows = [_times(config, *cell, found) for cell, found in sorted(cells.items())]
    columns = {
        "env": Column("env"),
        "method": Column("method"),
        "key": Column("key"),
        "runs": Column("runs"),
        "pack": Column("runs per pack"),
        "rate": Column("steps/s of a run", "{:.0f}"),
        "hours": Column("hours", "{:.2f}"),
    }
    notes = [
        "One process trains the runs of a pack in lockstep. The hours of the process are divided "
        "among its runs. The rate is the rate of a single run (mean over runs).",
        "Hours are for training complete runs, without evaluations and start-up.",
    ]
    return Table("Training times", columns, rows, notes)


def _times(config: Config, env: str, method: str, records: Sequence[Record]) -> dict[str, Cell]:
    rates = [r["steps_per_second"] for r in records if r.get("steps_per_second") is not None]
    packs = [r["pack"] for r in records if r.get("pack")]
    return {
        "env": env,
        "method": method_label(config, method),
        "key": method,
        "runs": len(records),
        "pack": " to ".join(map(str, sorted({min(packs), max(packs)}))) if packs else None,
        "rate": sum(rates) / len(rates) if rates else None,
        "hours": hours(records),
    }


def hours(records: Sequence[Record]) -> float | None:
    """Return the hours that the training of all runs took, or None if a run's hours are unknown.

    If one process trained several runs (a pack), each of them counts with an equal share of the
    process's hours.
    """
    if any(r.get("train_seconds") is None for r in records):
        return None
    return float(sum(r["train_seconds"] / (r.get("pack") or 1) for r in records) / 3600)


def facts(config: Config, runs: Runs) -> list[Fact]:
    """Return the facts that the reports show at their beginning."""
    found = Counter(status.status for status in runs.statuses.values())
    counted = ", ".join(f"{found[name]} {name}" for name in STATUSES if found[name])
    records = list(runs.records.values())
    made = "made here" if config.records == "trained" else "published with the suite"
    unscored = unscored_envs(runs.rows).items()
    where = Counter(
        f"{_text(r.get('machine'))} ({_text(r.get('gpu') or r.get('device'))})" for r in records
    )
    total = hours(records)
    return [
        Fact("Scale", config.scale),
        *([Fact("Study", config.study)] if config.study else []),
        Fact("Records", made),
        Fact("Runs", f"{len(runs.statuses)}: {counted}", found["finished"] < len(runs.statuses)),
        *(Fact("Scores", f"none on {env}: {reason}", True) for env, reason in unscored),
        _code(runs),
        Fact("Machine", "; ".join(name for name, _ in where.most_common()) or "no run"),
        Fact("Training", UNKNOWN if total is None else f"{total:.1f} hours of one process"),
    ]


def _code(runs: Runs) -> Fact:
    """Return a fact about the code that made the runs.

    The fact is a warning if some runs were made by other code than the present code, or with
    uncommitted changes.
    """
    others = sum(runs.statuses[key].other_source for key in runs.records)
    dirty = sum(bool(record.get("dirty")) for record in runs.records.values())
    same = len(runs.records) - others
    text = f"{same} of {len(runs.records)} runs were made by the same code as this page's"
    if dirty:
        text += f"; {dirty} with uncommitted changes"
    return Fact("Code", text, bool(others or dirty))
