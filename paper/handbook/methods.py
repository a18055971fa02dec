"""Write docs/methods.md: each method's equation, settings and deviations, taken from its code.

python -m paper.handbook.methods --out docs/methods.md
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ngt.errors import UserError
from ngt.files import atomic
from ngt.reward import RewardModel
from ngt.settings import resolve
from ngt.settings.config import CellConfig, Config, MethodConfig
from ngt.settings.load import load
from ngt.settings.options import Parser
from ngt.settings.schema import type_hints
from paper import command
from paper.drawing.table import markdown
from paper.handbook import readings
from paper.numbers import variants

ROOT = Path(__file__).resolve().parents[2]
LABELS = ("Reward", "Range", "Deviations", "Sources")
OPTIONAL = ("Traps",)
SHOWN = (*LABELS[:3], *OPTIONAL, *LABELS[3:])

HEAD = """\
# The methods

This page describes every method: its equations, its settings, and its deviations from its sources.
`python -m paper.handbook.methods` writes the page from the methods' docstrings, settings and code,
and a test checks that the page is up to date. The settings are those of the `paper`
[scale](../README.md#scales), i.e. of the paper's full experiments. Other scales may use smaller
values. In the equations, "expert" and "agent" stand for the batches of expert and agent transitions
in an iteration. For every method except FAIRL, the reward is high if a transition is like the
expert's transitions. [new-method.md](new-method.md) shows how to add a method.

In the first table, "key" is the method's name in commands and config files. "Input" says what the
method compares between expert and agent: state and action (s, a), state and next state (s, s') or
the state alone (s).

IQ-Learn and the methods after it are not in the paper. Tests check the losses of these methods.
`beyond_figure` shows which of these methods learn at the `quick` scale ([results](learning.md)).
"""


@dataclass(frozen=True)
class Text:
    """The parts of a method's docstring.

    summary: the docstring's first paragraph.
    blocks: the paragraphs between the summary and the first label, each marked as text or code.
    labelled: maps each label (in LABELS or OPTIONAL) to the paragraph that follows it.
    """

    summary: str
    blocks: tuple[tuple[Literal["text", "code"], str], ...]
    labelled: dict[str, str]


def read(docstring: str, where: str) -> Text:
    """Split a method's docstring into its parts.

    Raise UserError if the docstring has no equation, or lacks the paragraph of a label in LABELS.

    where: the name of the module or class, for error messages.
    """
    head, *labelled = re.split(rf"^({'|'.join(SHOWN)}):", docstring, flags=re.MULTILINE)
    parts = dict(zip(labelled[::2], (_lines(t) for t in labelled[1::2]), strict=True))
    lacking = [label for label in LABELS if not parts.get(label)]
    if lacking:
        raise UserError(f"{where}: its docstring lacks a paragraph `{lacking[0]}: ...`; add it")
    summary, _, rest = head.strip().partition("\n\n")
    blocks: list[tuple[Literal["text", "code"], str]] = []
    for paragraph in re.split(r"\n{2,}", rest.strip("\n")):
        if paragraph.startswith(" "):
            code = inspect.cleandoc(f"\n{paragraph}")
            if blocks and blocks[-1][0] == "code":
                code = f"{blocks.pop()[1]}\n\n{code}"
            blocks.append(("code", code))
        elif paragraph:
            blocks.append(("text", _lines(paragraph)))
    if "code" not in (kind for kind, _ in blocks):
        raise UserError(f"{where}: its docstring lacks an equation, an indented block; add it")
    return Text(_lines(summary), tuple(blocks), parts)


def _lines(text: str) -> str:
    return " ".join(text.split())


def text_of(cls: type) -> Text:
    """Find the docstring that describes a method's class, and return its parts.

    This is the class's own docstring if it has labels, and otherwise its module's docstring.
    """
    own, module = inspect.cleandoc(cls.__doc__ or ""), inspect.getmodule(cls)
    if re.search(rf"^{LABELS[0]}:", own, re.MULTILINE):
        return read(own, f"{cls.__module__}:{cls.__name__}")
    return read(inspect.cleandoc((module and module.__doc__) or ""), cls.__module__)


# ---------------------------------------------------------------- facts from the code


def uses(cls: type, *names: str) -> bool:
    """Return True if a method's code uses an attribute with one of these names.

    Only the class itself and its base classes below RewardModel are searched.
    """
    own = cls.__mro__[: cls.__mro__.index(RewardModel)]
    functions = [f for c in own for f in vars(c).values() if inspect.isfunction(f)]
    code = [inspect.unwrap(f).__code__ for f in functions]
    return any(name in c.co_names for c in code for name in names)


def facts(config: Config, name: str, cls: Any) -> dict[str, str]:
    """Describe what a method does in the training loop: one string per column of the table.

    name: the method's name in the config.
    cls: the method's class.
    """
    feeds, implicit = (
        getattr(cls, name) is not getattr(RewardModel, name) for name in ("feed", "critic_loss")
    )
    drawn = cls.learns or cls.offline or feeds
    demos = ["a batch each iteration"] * drawn + ["known as a whole"] * uses(cls, "demos")
    rate = resolve.method_rate(config, name)
    kept = {None: "", 1: ", all transitions"}.get(rate, f", every {rate}th transition")
    stored = cls.observe is not RewardModel.observe
    formed = "when the step is taken" if stored else "when a batch is drawn"
    general = "(s, a), (s, s') or (s)" if uses(cls, "inputs", "input") else None
    fitted = "the policy" if cls.offline else "the critic" if implicit else None
    before = "a reward, before the run" if uses(cls, "descend") else "nothing"
    return {
        "env": "none" if cls.offline else "stepped",
        "learned": fitted or ("a reward" if cls.learns else before),
        "reward formed": "never" if fitted else formed,
        "demonstrations": (", ".join(demos) or "none") + kept,
        "input": general or ("(s, a)" if drawn else "none"),
    }


def agent_settings(config: Config, name: str, env: str) -> dict[str, tuple[str, str]]:
    """Return those settings of the agent and the training loop that a method changes on an env.

    The result maps the name of each setting to the setting's value and meaning.
    """
    plain = replace(config, methods={name: MethodConfig(model="ngt.reward:Constant")})
    ours, shared = (
        variants.settings(resolve.resolve(c, env, name, CellConfig.mode, CellConfig.rate))
        for c in (config, plain)
    )
    shared.pop("model")
    return {key: ours[key] for key, known in shared.items() if ours[key] != known}


@dataclass(frozen=True)
class Setting:
    """A row of a method's table of settings, as Markdown."""

    name: str
    value: str
    meaning: str


def settings(config: Config, name: str, cls: Any, envs: Sequence[str]) -> list[Setting]:
    """Return the rows of a method's table of settings, with the values on each env.

    The settings of the method's class come first, then the settings of the agent and the training
    loop.
    """
    _, general = resolve.model_params(config, name, "")
    on = {env: resolve.model_params(config, name, env)[1] for env in envs}
    rows = [
        Setting(
            f.name,
            _values(general[f.name], {e: p[f.name] for e, p in on.items()}),
            _meaning(f, type_hints(cls.Config)[f.name]),
        )
        for f in dataclasses.fields(cls.Config)
    ]
    agent = {env: agent_settings(config, name, env) for env in envs}
    for key in dict.fromkeys(k for changes in agent.values() for k in changes):
        value = {env: changes[key][0] for env, changes in agent.items() if key in changes}
        meaning = next(changes[key][1] for changes in agent.values() if key in changes)
        same = len(value) == len(agent) and len(set(value.values())) == 1
        text = _show(next(iter(value.values()))) if same else ", ".join(_on(value))
        rows.append(Setting(key, text, escape(meaning)))
    return rows


def _values(general: Any, on: dict[str, Any]) -> str:
    return ", ".join([_show(general), *_on({e: v for e, v in on.items() if v != general})])


def _on(values: dict[str, Any]) -> list[str]:
    return [f"{_show(value)} on {env}" for env, value in values.items()]


def _show(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"`[{', '.join(str(v) for v in value)}]`"
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    text = f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else value
    return f"`{text}`"


def _meaning(field: dataclasses.Field[Any], hint: Any) -> str:
    text = escape(field.metadata.get("doc", ""))
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    return text + (f" ({', '.join(f'`{c}`' for c in choices)})" if choices else "")


# ---------------------------------------------------------------- Markdown


def escape(text: str) -> str:
    """Escape a text so that Markdown shows it literally; leave text in backticks unchanged."""
    parts = text.split("`")
    plain = [re.sub(r"[*<~\\]|(?<!\w)_|_(?!\w)", r"\\\g<0>", p) for p in parts[::2]]
    return "`".join(
        p for pair in zip(plain, [*parts[1::2], None], strict=False) for p in pair if p is not None
    )


def title(config: Config, name: str) -> str:
    """Return the heading of a method's section."""
    return f"{escape(resolve.method_label(config, name))} (`{name}`)"


def link(config: Config, name: str) -> str:
    """Return a link to a method's section.

    GitHub and GitLab derive the section's anchor from its heading.
    """
    anchor = re.sub(r"[^\w\- ]", "", f"{resolve.method_label(config, name)} {name}".lower())
    return f"[{escape(resolve.method_label(config, name))}](#{anchor.replace(' ', '-')})"


def ordered(config: Config) -> list[str]:
    """Return the config's methods, except for variants that change only the length of a run.

    The methods of the main figure come first.
    """
    main = config.figures["main_figure"].methods
    return list(dict.fromkeys((*main, *resolve.distinct_methods(config))))


def section(config: Config, name: str, before: dict[str, Any]) -> Iterator[str]:
    """Yield the paragraphs of a method's section.

    before: the class of each method that has an earlier section, by the method's name. This
    function adds the class of the present method.
    """
    path, _ = resolve.model_params(config, name, "")
    cls = resolve.load_model(path, name)
    yield f"\n## {title(config, name)}\n"
    twin = next((n for n, c in before.items() if c is cls), None)
    if twin is None:
        text = text_of(cls)
        yield f"{escape(text.summary)}\n"
        for kind, block in text.blocks:
            yield f"```text\n{block}\n```\n" if kind == "code" else f"{escape(block)}\n"
        for label in SHOWN:
            if label in text.labelled:
                yield f"- **{label}:** {escape(text.labelled[label])}"
    else:
        yield f"A variant of {link(config, twin)}: the same class with other settings."
    yield f"\nClass `{path}`{_file(cls)}.\n"
    envs = list(dict.fromkeys((*config.figures["main_figure"].envs, *config.methods[name].envs)))
    rows = settings(config, name, cls, envs)
    kin = next((n for n, c in before.items() if c.Config is cls.Config), None)
    if not rows:
        yield "Settings: none.\n"
    elif kin is not None:
        known = settings(config, kin, cls, envs)
        rows = [row for row in rows if row not in known]
        yield f"Settings: those of {link(config, kin)}{', except' if rows else '.'}\n"
    if rows:
        cells = [(f"`{row.name}`", row.value, row.meaning) for row in rows]
        yield markdown([("setting", "value", "meaning"), *cells])
    before[name] = cls


def _file(cls: type) -> str:
    file = Path(inspect.getfile(cls)).resolve()
    if not file.is_relative_to(ROOT):
        return ""
    name = file.relative_to(ROOT).as_posix()
    return f" in [{name}](../{name})"


def document(config: Config) -> str:
    """Return the text of docs/methods.md."""
    names = ordered(config)
    rows: list[tuple[str, ...]] = []
    for name in names:
        cls = resolve.load_model(resolve.model_params(config, name, "")[0], name)
        shown = facts(config, name, cls)
        rows.append((link(config, name), f"`{name}`", *shown.values()))
    before: dict[str, Any] = {}
    parts = [HEAD, markdown([("method", "key", *shown), *rows])]
    parts += ["\n**Choices that can be read in two ways**\n", readings.section(config)]
    parts += (part for name in names for part in section(config, name, before))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Print the page or, with --out, write it to a file. On an error, leave the file unchanged."""
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m paper.handbook.methods", description=about)
    parser.add_argument("--out", type=Path, help="write the page to this file")

    def run() -> None:
        args = parser.parse_args(argv)
        text = document(load({"scale": "paper"}))
        if args.out is None:
            print(text, end="")
        else:
            with atomic(args.out) as temporary:
                temporary.write_text(text, encoding="utf-8")

    command.one_line_errors("methods", run)


if __name__ == "__main__":
    main()
