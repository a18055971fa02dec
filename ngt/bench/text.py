"""Functions that format the benchmarks' results as text."""

from collections.abc import Mapping, Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[object]], left: int = 1) -> list[str]:
    """Return a line per row, with the first `left` columns left-aligned, the rest right-aligned."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell!s:{'<' if at < left else '>'}{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def fields(row: Mapping[str, Any]) -> str:
    """Return a row as `name=value ...`, with floats to three significant digits."""
    return " ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items())


def spread(row: Mapping[str, Any]) -> str:
    """Return the lowest and highest rate of a row over the rounds, as text."""
    return f"({row['slowest']}-{row['fastest']})"


def table(result: Mapping[str, Any]) -> str:
    """Return the result of `bench` as text: rates, ratios, profile and agreement."""
    rows = result["rows"]
    cells: list[Sequence[object]] = [
        ("", "updates/s", "(range)", "/ SB3", "/ SBX", "/ floor", "env steps/s")
    ]
    cells += [
        (
            r["what"],
            r["updates_per_second"],
            spread(r),
            *(f"{r[k]:.2f}" if k in r else "" for k in ("over_peer", "over_sbx", "over_floor")),
            r.get("env_steps_per_second", ""),
        )
        for r in rows
    ]
    lines = [
        f"{result['env']}, {result['threads']} thread, batch {result['batch']}, "
        f"median of {result['repeats']}",
        *aligned(cells),
        "updates/s counts all runs of a pack; '/ floor' is time relative to the products alone;",
        f"env steps/s is per run; the envs alone reach {result['envs_alone_steps_per_second']:.0f}",
        *(
            f"{r['what']}: {r['update_ms']} ms per update of one run, "
            f"of which {r['products_ms']} ms are matrix products"
            for r in rows
            if "products_ms" in r
        ),
    ]
    if all("over_peer" not in r for r in rows):
        lines.append("stable-baselines3 is not installed, so there is no peer")
    if result.get("peer_versions"):
        lines.append("SBX: " + ", ".join(f"{n} {v}" for n, v in result["peer_versions"].items()))
    if "together" in result:
        t = result["together"]
        lines.append(
            f"{t['processes']} processes at once: {t['all']} updates/s of NGT, {t['gain']:.2f} "
            f"times one process's {t['one']}"
        )
    parts = [(p["kind"], f"{p['ms']:.2f} ms", f"{p['share']:.1%}") for p in result["profile"]]
    far = [
        (f"after {a['updates']:>4} updates", f"{a['pack_alone']:.1e}") for a in result["agreement"]
    ]
    lines += [
        "\none NGT update by kind of work (slower than above, because the profiler is on)",
        *aligned(parts),
        "\nlargest difference of any parameter between a pack of 3 and its runs alone",
        *aligned(far),
    ]
    return "\n".join(lines)


def methods_table(result: Mapping[str, Any]) -> str:
    """Return the result of `bench_methods` as text."""
    reference = next(r for r in result["rows"] if r["method"] == result["relative_to"])
    cells: list[Sequence[object]] = [("", "", "iterations/s", "(range)", "time", "(range)")]
    cells += [
        (
            r["what"],
            r["method"],
            r["iterations_per_second"],
            spread(r),
            f"{r['cost']:.2f}",
            f"({r['least']:.2f}-{r['most']:.2f})",
        )
        for r in result["rows"]
    ]
    heading = (
        f"{result['env']}, scale {result['scale']}, {result['threads']} thread, one run, median of "
        f"{result['repeats']}; time is relative to one iteration of {reference['what']}"
    )
    return "\n".join([heading, *aligned(cells, left=2)])
