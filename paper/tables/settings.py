"""A table of all settings of the backbone, i.e. the shared agent and trainer, and of each method.

For each setting, the table compares the value that the paper prints, the value in the authors'
code, and ours. Our values are read from the config; the others are in `paper.claims.stated`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ngt.agent.sac import target_entropy
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.runs.keys import Layout
from ngt.settings.config import Config, ExpertConfig, MethodConfig, Override, SacConfig
from ngt.settings.load import load
from ngt.settings.resolve import distinct_methods, expert_config, resolve_expert
from ngt.training.learner import Learner
from paper import register
from paper.claims.stated import AGREE, BACKBONE, DIFFERS, EXPERT, SILENT, STATED
from paper.command import Made, Options
from paper.drawing.table import Cell, Column, Table
from paper.numbers import variants
from paper.numbers.variants import Difference, Settings, as_text

TARGET = "sac.target_entropy_scale"  # a setting whose meaning depends on the env

COLUMNS = {
    "method": Column("method", group=True),
    "like": Column("like", group=True),
    "setting": Column("setting", width=0.13),
    "envs": Column("on", width=0.08),
    "printed": Column("printed", width=0.11),
    "code": Column("the authors' code", width=0.105),
    "value": Column("ours", width=0.095),
    "at_paper": Column("ours at scale paper", width=0.075),
    "agrees": Column("printed and ours", width=0.095),
    "meaning": Column("meaning", width=0.185),
}


def settings(config: Config, name: str, env: str) -> Settings:
    """Return the value and meaning of every setting of a method on an env.

    name: the method, or BACKBONE or EXPERT.
    """
    if name == EXPERT:
        entry = expert_config(config, env)
        shared = {f.name for f in dataclasses.fields(Override)}
        own = [f for f in dataclasses.fields(ExpertConfig) if f.name not in shared]
        return variants.settings(resolve_expert(config, env)) | {
            f.name: (as_text(getattr(entry, f.name)), f.metadata["doc"]) for f in own
        }
    if name != BACKBONE:
        return variants.settings(variants.cell(config, env, name))
    plain = replace(config, methods={BACKBONE: MethodConfig(model="ngt.reward:Constant")})
    backbone = variants.settings(variants.cell(plain, env, BACKBONE))
    del backbone["model"]
    (window,) = (f for f in dataclasses.fields(Config) if f.name == "window")
    graphs = inspect.signature(Learner).parameters["graphs"].default
    return backbone | {
        "window": (as_text(config.window), window.metadata["doc"]),
        "graphs": (
            as_text(graphs),
            "CUDA graphs on a GPU; an argument of the learner, not a config entry; changes no "
            "result",
        ),
    }


def sides(config: Config, envs: Sequence[str]) -> dict[str, dict[str, Settings]]:
    """Return the settings of the backbone, the expert and every method, by name and env."""
    names = (BACKBONE, EXPERT, *config.methods)
    return {name: {env: settings(config, name, env) for env in envs} for name in names}


def like(config: Config, name: str) -> str:
    """Return the method with which the table compares a method's settings.

    This is the method that its config entry names under `like`, or else BACKBONE. Return "" for
    BACKBONE itself.
    """
    entry = config.methods.get(name)
    return "" if name == BACKBONE else (entry.like if entry else "") or BACKBONE


def told(
    own: Mapping[str, Settings], other: Mapping[str, Settings], *keys: str
) -> list[Difference]:
    """Return the settings of `own` that the table shows, with their values.

    These are the settings in `keys`, and all settings in which `own` and `other` differ on an env.

    own, other: the settings of two methods, by env.
    """
    changed = variants.compare({env: (other[env], own[env]) for env in own})
    shown = {(row.name, env) for row in changed for env in row.envs}
    shown |= {(key, env) for key in keys for env in own}
    return variants.compare(
        {e: ({}, {k: v for k, v in side.items() if (k, e) in shown}) for e, side in own.items()}
    )


def where(on: Sequence[str], envs: Sequence[str]) -> str:
    """Return a short text that names the envs `on` out of `envs`, such as `all but Ant-v4`."""
    others = [env for env in envs if env not in on]
    names = ", ".join(on if len(on) <= len(others) else others)
    return "all" if not others else names if len(on) <= len(others) else f"all but {names}"


def entropy_targets(own: Mapping[str, Settings]) -> dict[str, float]:
    """Return the target entropy on each env, converted to the entropy of actions in [-1, 1].

    Leave out envs on which the conversion does not change the value.

    own: the settings of the backbone, the expert or a method, by env.
    """
    found = {}
    for env, known in own.items():
        sac = SacConfig(
            target_entropy_scale=float(known[TARGET][0]),
            entropy_units=known["sac.entropy_units"][0],  # type: ignore[arg-type]
        )
        task = get_task(env)
        target = target_entropy(task.act, sac, task.half_range)
        if target != target_entropy(task.act, replace(sac, entropy_units="tanh"), 1.0):
            found[env] = target
    return found


def meaning(row: Difference, own: Mapping[str, Settings]) -> str:
    """Return the meaning of a setting.

    For the target entropy, also give its value for actions in [-1, 1].
    """
    text = row.meaning.replace("`", "")
    if row.name != TARGET:
        return text
    targets = entropy_targets({env: own[env] for env in row.envs})
    shown = ", ".join(f"{target:.2f} on {env}" for env, target in targets.items())
    return f"{text}; of the action in [-1, 1] it is {shown}" if shown else text


def rows(
    config: Config,
    name: str,
    ours: Mapping[str, Mapping[str, Settings]],
    paper: Mapping[str, Mapping[str, Settings]],
) -> Iterator[dict[str, Cell]]:
    """Yield the table's rows about the backbone, the expert or a method.

    name: BACKBONE, EXPERT or the method.
    ours, paper: the results of `sides` for the config and for scale `paper`.
    """
    base = like(config, name)
    stated = {s.key: s for s in STATED if s.method == name and s.key}
    own, printed = ours[name], name in (BACKBONE, EXPERT, *main_methods())
    head: dict[str, Cell] = {"method": name, "like": base or None}
    found = told(own, ours[base] if base else {env: {} for env in own}, *stated)
    for row in found:
        value, source = row.values[1], stated.get(row.name)
        there = [
            paper[name][env].get(row.name, ("none", ""))[0] for env in row.envs if name in paper
        ]
        unsaid = SILENT if printed and row.name != "model" else None
        yield head | {
            "setting": row.name,
            "envs": where(row.envs, list(own)),
            "printed": source.printed if source else unsaid,
            "code": source.code if source else None,
            "value": value,
            "at_paper": " or ".join(dict.fromkeys(there)) if set(there) - {value} else None,
            "agrees": source.agreement(value, row.envs) if source else unsaid,
            "meaning": meaning(row, own),
        }
    blank: dict[str, Cell] = dict.fromkeys(COLUMNS) | head
    if not found:
        yield blank | {"meaning": f"no setting differs from that of {base} on these envs"}
    for source in STATED:
        if source.method == name and not source.key:
            yield blank | {
                "printed": f"{source.name}: {source.printed}",
                "code": source.code,
                "meaning": source.why,
            }


@functools.cache
def main_methods() -> tuple[str, ...]:
    """Return the methods that the paper describes, i.e. the methods of its main figure.

    All other methods are ablations from the paper, or additions of this suite.
    """
    return load({"scale": "paper"}).figures["main_figure"].methods


def table(config: Config) -> Table:
    """Return a table of the settings of the backbone, the expert and each method, in this order."""
    envs, methods = register.envs(config), distinct_methods(config)
    if not envs:
        raise UserError("figures: none names an env, so there are no settings to show; name one")
    default = load({"scale": "paper"})
    ours = sides(config, envs)
    paper = ours if config == default else sides(default, envs)
    lines = [
        row for name in (BACKBONE, EXPERT, *methods) for row in rows(config, name, ours, paper)
    ]
    timed = ", ".join(name for name in config.methods if name not in methods)
    verdicts = [str(row["agrees"]).partition(":")[0] for row in lines if row["printed"]]
    notes = [
        f"Scale {config.scale}, envs {', '.join(envs)}. Settings are named and written as in a "
        f"config file. A method's rows are the settings in which it differs from the method that "
        f"“like” names. The backbone is the agent and the training loop that all "
        f"methods share.",
        f"Of the paper's values, {verdicts.count(AGREE)} agree with ours, "
        f"{verdicts.count(DIFFERS)} differ and {verdicts.count('None')} have no setting here. The "
        f"paper is silent on {verdicts.count(SILENT)} settings. Ablations, and methods that are "
        f"not in the paper, have no printed values.",
        "The authors' code: the backbone is lionelblonde/sac-td3-cudagraphs-pytorch, the nearest "
        "public relative of the paper's agent; the release is lionelblonde/ngt, which is later "
        "than the paper. A dash means unknown, or no such setting.",
    ]
    if timed:
        notes.append(f"Left out, because only the length of a run differs: {timed}.")
    columns = dict(COLUMNS)
    if not any(row["at_paper"] for row in lines):
        width = (columns.pop("at_paper").width or 0) + (COLUMNS["meaning"].width or 0)
        columns["meaning"] = replace(COLUMNS["meaning"], width=width)
    return Table("Settings", columns, [{k: row[k] for k in columns} for row in lines], notes)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table, which needs no runs."""
    return Made(table(config))
