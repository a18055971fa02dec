"""What the report says of the runs themselves: how many, made by what code, where, how fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ngt.runs.keys import RunKey, run_table
from ngt.runs.provenance import source_hash
from ngt.runs.state import STATUSES, Status
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.drawing.table import Cell, Column, Table
from paper.register import FIGURES, TABLES

# What a run without a field says of it.
UNKNOWN = "not recorded"

MEANING = {
    "finished": "",
    "diverged": "a number was not finite; the run counts with its last value",
    "stale": "trained with other settings or demonstrations",
    "damaged": "complete once, and a file was changed since",
    "part": "begun and not ended",
    "missing": "",
}


def counts(config: Config, statuses: Mapping[RunKey, Status]) -> Table:
    """Runs by artefact and status; a run that two show counts in both, and once in the last row."""
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


def incomplete(statuses: Mapping[RunKey, Status]) -> Table | None:
    """Every run that is not finished; None where all are."""
    rows = [
        {"run": str(key), "status": status.status, "note": status.note}
        for key, status in statuses.items()
        if status.status != "finished"
    ]
    columns = {name: Column(name) for name in ("run", "status", "note")}
    return Table("Runs that are not finished", columns, rows) if rows else None


def _tally(records: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> list[dict[str, Cell]]:
    """The combinations that there are of some fields, most runs first."""
    found = Counter(tuple(_text(record.get(field)) for field in fields) for record in records)
    return [
        {**dict(zip(fields, values, strict=True)), "runs": n} for values, n in found.most_common()
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return UNKNOWN if value is None else str(value)


def sources(records: Mapping[RunKey, Mapping[str, Any]]) -> Table:
    """The code that made the runs."""
    rows = _tally(list(records.values()), ("source_hash", "commit", "dirty"))
    for row in rows:
        row["here"] = "yes" if row["source_hash"] == source_hash() else "no"
    columns = {
        "source_hash": Column("source hash"),
        "here": Column("same as here"),
        "commit": Column("commit"),
        "dirty": Column("uncommitted changes"),
        "runs": Column("runs"),
    }
    note = (
        "The hash is of all code that decides a run's numbers; a commit that changes none of it "
        "keeps the hash."
    )
    return Table("Code that made the runs", columns, rows, [note])


def machines(records: Mapping[RunKey, Mapping[str, Any]]) -> Table:
    """Machines and versions that made the runs."""
    flat = [{**r, **(r.get("versions") or {})} for r in records.values()]
    libraries = dict.fromkeys(name for r in records.values() for name in r.get("versions") or ())
    fields = ("machine", "device", "threads", "python", *libraries)
    widths = {"machine": 0.2, "device": 0.12}
    columns = {name: Column(name, width=widths.get(name)) for name in (*fields, "runs")}
    return Table("Machines and versions", columns, _tally(flat, fields))


def times(config: Config, records: Mapping[RunKey, Mapping[str, Any]]) -> Table:
    """How long each method trained, on each env."""
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for key, record in records.items():
        cells.setdefault((key.env, key.method), []).append(record)
    rows: list[dict[str, Cell]] = []
    for (env, method), found in sorted(cells.items()):
        rates = [r["steps_per_second"] for r in found if r.get("steps_per_second") is not None]
        rows.append(
            {
                "env": env,
                "method": method_label(config, method),
                "key": method,
                "runs": len(found),
                "pack": _range([r["pack"] for r in found if r.get("pack")]),
                "rate": sum(rates) / len(rates) if rates else None,
                "hours": hours(found),
            }
        )
    columns = {
        "env": Column("env"),
        "method": Column("method"),
        "key": Column("key"),
        "runs": Column("runs"),
        "pack": Column("runs a pack"),
        "rate": Column("steps/s of a run", "{:.0f}"),
        "hours": Column("hours", "{:.2f}"),
    }
    notes = [
        "A pack is trained in lockstep by one process: its hours are shared out among its runs, "
        "and each of them advances at the rate given (mean over runs).",
        "Hours of training, without evaluations and start-up, of the runs that are complete.",
    ]
    return Table("Training times", columns, rows, notes)


def _range(values: Sequence[int]) -> str | None:
    low, high = min(values, default=None), max(values, default=None)
    return None if low is None else str(low) if low == high else f"{low} to {high}"


def hours(records: Sequence[Mapping[str, Any]]) -> float | None:
    """Hours of training of these runs' share in their packs; None where a run lacks its own."""
    if any(r.get("train_seconds") is None for r in records):
        return None
    return float(sum(r["train_seconds"] / (r.get("pack") or 1) for r in records) / 3600)


def facts(config: Config, runs: Runs) -> list[tuple[str, str, bool]]:
    """(name, text, whether it is a warning): the runs at a glance."""
    found = Counter(status.status for status in runs.statuses.values())
    counted = ", ".join(f"{found[name]} {name}" for name in STATUSES if found[name])
    records = list(runs.records.values())
    hashes = Counter(_text(r.get("source_hash")) for r in records)
    mixed = ", ".join(f"{name} ({n} runs)" for name, n in hashes.most_common())
    code = f"mixed sources: {mixed}" if len(hashes) > 1 else next(iter(hashes), "no run")
    others = sum(n for name, n in hashes.items() if name != source_hash())
    if others:
        code += f"; {others} of {len(records)} runs were made by other code than this page's"
    dirty = sum(bool(r.get("dirty")) for r in records)
    if dirty:
        code += f"; {dirty} with uncommitted changes"
    where = Counter(f"{_text(r.get('machine'))} ({_text(r.get('device'))})" for r in records)
    total = hours(records)
    return [
        ("Scale", config.scale, False),
        (
            "Records",
            "made here" if config.records == "trained" else "published with the suite",
            False,
        ),
        ("Runs", f"{len(runs.statuses)}: {counted}", found["finished"] < len(runs.statuses)),
        *(
            ("Scores", f"none on {env}: {reason}", True)
            for env, reason in unscored_envs(runs.rows).items()
        ),
        ("Code", code, len(hashes) > 1 or bool(others) or bool(dirty)),
        ("Machine", "; ".join(name for name, _ in where.most_common()) or "no run", False),
        ("Training", UNKNOWN if total is None else f"{total:.1f} hours of one process", False),
    ]
