"""docs/methods.md: its contents come from code and are up to date."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from ngt.errors import UserError
from ngt.reward import RewardModel
from ngt.settings import config as cfg
from ngt.settings import resolve
from ngt.settings.load import load
from ngt.settings.schema import opt
from paper.handbook import methods

CONFIG = load({"scale": "paper"})
SHIPPED = Path(__file__).resolve().parents[3] / "docs" / "methods.md"
LABELLED = "Reward: r.\nRange: [0, 1].\nDeviations: none.\nSources: a paper."


@dataclass(frozen=True)
class ToyConfig:
    width: tuple[int, ...] = opt((8, 8), "of the net", 1)
    rate: float = opt(1e-5, "a|b * c")
    kind: Literal["soft", "hard"] = opt("soft", "how")


class Toy(RewardModel):
    """A toy.

        reward = |x|
            + 0

    with x_t the `x` of **t**.

    Reward: |x|; high is
    expert-like.
    Range: [0, inf).

    Deviations: a < b,
    * and more.

    Sources: none.
    """

    Config = ToyConfig
    offline = False

    def reward(self, batch: Any) -> Any:
        return self.inputs(batch)


class Stored(Toy):
    """Another class with the same settings.

        reward = 2

    Reward: 2.
    Range: 2.
    Deviations: none.
    Sources: none.
    """

    learns = False

    def observe(self, transition: Any, done: Any) -> Any:
        return self.spec.demos


# ---------------------------------------------------------------- docstrings


def test_a_docstring_is_parsed() -> None:
    text = methods.text_of(Toy)
    assert text.summary == "A toy."
    assert text.blocks == (
        ("code", "reward = |x|\n    + 0"),
        ("text", "with x_t the `x` of **t**."),
    )
    assert text.labelled == {
        "Reward": "|x|; high is expert-like.",
        "Range": "[0, inf).",
        "Deviations": "a < b, * and more.",
        "Sources": "none.",
    }


def test_paragraphs_and_equations_keep_their_order() -> None:
    text = methods.read(f"One\nline.\n\na\nb:\n\n  x = 1\n\n  y = 2\n\nc\n\n{LABELLED}", "m")
    assert text.summary == "One line."
    assert text.blocks == (("text", "a b:"), ("code", "x = 1\n\ny = 2"), ("text", "c"))


@pytest.mark.parametrize("label", methods.LABELS)
def test_a_label_must_not_be_missing(label: str) -> None:
    rest = "\n".join(line for line in LABELLED.splitlines() if not line.startswith(label))
    with pytest.raises(UserError, match=f"m: its docstring lacks a paragraph `{label}: ...`"):
        methods.read(f"One.\n\n  x = 1\n\n{rest}", "m")


def test_an_equation_must_not_be_missing() -> None:
    with pytest.raises(UserError, match="m: its docstring lacks an equation"):
        methods.read(f"One.\n\nwords\n\n{LABELLED}", "m")


def test_a_module_speaks_for_its_class_unless_the_class_does() -> None:
    cls = resolve.load_model(CONFIG.methods["ngt"].model, "")
    assert methods.text_of(cls).summary.startswith("Noise-Guided Transport")
    constant = resolve.load_model(CONFIG.methods["constant"].model, "")
    assert methods.text_of(constant).summary.startswith("A constant reward")


@pytest.mark.parametrize("name", CONFIG.methods)
def test_every_method_has_its_paragraphs(name: str) -> None:
    cls = resolve.load_model(resolve.model_params(CONFIG, name, "")[0], name)
    text = methods.text_of(cls)
    required = [label for label in text.labelled if label not in methods.OPTIONAL]
    assert required == list(methods.LABELS)
    fields = dataclasses.fields(cls.Config)
    assert all(field.metadata.get("doc") for field in fields), "each setting must have a meaning"
    assert len(text.summary) < 120 and text.summary.endswith(".")


# ---------------------------------------------------------------- facts and settings


def config_of(**entries: Any) -> cfg.Config:
    config: cfg.Config = load({"scale": "paper", "methods": entries})
    return config


TOY = {"label": "T*", "model": f"{__name__}:Toy"}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow configs to name this file's classes."""
    real = resolve.load_model
    mine = {f"{__name__}:{c.__name__}": c for c in (Toy, Stored)}
    monkeypatch.setattr(
        resolve, "load_model", lambda path, where: mine.get(path) or real(path, where)
    )


def test_facts() -> None:
    """Check each method's role in the training loop, as read from its class."""
    config = config_of(
        toy=TOY, stored={"model": f"{__name__}:Stored", "rate": 1}, thin={"like": "bc", "rate": 5}
    )
    shown = {
        n: methods.facts(config, n, resolve.load_model(resolve.model_params(config, n, "")[0], n))
        for n in ("toy", "stored", "thin", "constant", "red-original")
    }
    every = "(s, a), (s, s') or (s)"
    assert [list(f.values()) for f in shown.values()] == [
        ["stepped", "a reward", "when a batch is drawn", "a batch each iteration", every],
        [
            "stepped",
            "nothing",
            "when the step is taken",
            "known as a whole, all transitions",
            every,
        ],
        ["none", "the policy", "never", "a batch each iteration, every 5th transition", "(s, a)"],
        ["stepped", "nothing", "when a batch is drawn", "none", "none"],
        [
            "stepped",
            "a reward, before the run",
            "when the step is taken",
            "known as a whole",
            every,
        ],
    ]


def test_settings_of_a_method_and_of_single_envs() -> None:
    entry = {
        **TOY,
        "params": {"width": [4]},
        "train": {"batch": 64},
        "envs": {"Ant-v4": {"params": {"kind": "hard"}, "sac": {"gamma": 0.9}}},
    }
    rows = methods.settings(config_of(toy=entry), "toy", Toy, ["Ant-v4", "Hopper-v4"])
    assert [(r.name, r.value) for r in rows] == [
        ("width", "`[4]`"),
        ("rate", "`1e-5`"),
        ("kind", "`soft`, `hard` on Ant-v4"),
        ("sac.gamma", "`0.9` on Ant-v4"),
        ("train.batch", "`64`"),
    ]
    red = resolve.load_model("baselines.red_original:RedOriginal", "red-original")
    unset = methods.settings(config_of(), "red-original", red, ["Ant-v4"])
    assert {r.name: r.value for r in unset}["temperature"] == "`null`"
    assert rows[1].meaning == "a|b \\* c" and rows[2].meaning == "how (`soft`, `hard`)"


def test_a_section_and_its_variants() -> None:
    config = config_of(
        toy=TOY,
        b={"like": "toy", "params": {"rate": 1.0}},
        other={"like": "toy", "model": f"{__name__}:Stored"},
    )
    before: dict[str, Any] = {}
    first, variant, other = (
        "\n".join(methods.section(config, name, before)) for name in ("toy", "b", "other")
    )
    assert first.startswith("\n## T\\* (`toy`)\n")
    assert "```text\nreward = |x|\n    + 0\n```" in first
    assert "- **Deviations:** a \\< b, \\* and more." in first
    assert "with x_t the `x` of \\*\\*t\\*\\*." in first
    assert "| `width` | `[8, 8]` | of the net |" in first
    assert "A variant of [T\\*](#t-toy): the same class" in variant
    assert "```" not in variant and variant.count("\n| `") == 1 and "| `1` |" in variant
    assert "reward = 2" in other and other.endswith("Settings: those of [T\\*](#t-toy).\n")
    none = ["\n".join(methods.section(config, name, before)) for name in ("bc", "constant")]
    assert all("Settings: none." in text for text in none)


def test_methods_come_in_the_figures_order() -> None:
    config = load({"scale": "paper", "figures": {"main_figure": {"methods": ["bc-full", "ngt"]}}})
    names = methods.ordered(config)
    timed = set(config.figures["speed_table"].methods)
    assert names[:2] == ["bc-full", "ngt"] and set(names) == set(config.methods) - timed


def test_text_in_backticks_is_not_escaped() -> None:
    assert methods.escape("*a* `b*c` d_e _f_ <g") == "\\*a\\* `b*c` d_e \\_f\\_ \\<g"


# ---------------------------------------------------------------- the document


def test_the_shipped_document_is_up_to_date() -> None:
    """Check the page. `python -m paper.handbook.methods --out docs/methods.md` updates it."""
    assert SHIPPED.read_text() == methods.document(CONFIG)


def test_every_method_has_a_row_and_a_section_that_links_find() -> None:
    text = methods.document(CONFIG)
    titles = [part.partition("\n")[0] for part in text.split("\n## ")[1:]]
    anchors = [re.sub(r"[^a-z0-9_\- ]", "", t.lower()).replace(" ", "-") for t in titles]
    assert [t.partition("(`")[2] for t in titles] == [f"{n}`)" for n in methods.ordered(CONFIG)]
    assert all(f"| `{name}` | " in text for name in methods.ordered(CONFIG))
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#(.+?)\)", text)) == set(anchors)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = methods.document(CONFIG)
    methods.main([])
    assert capsys.readouterr().out == text
    page = tmp_path / "methods.md"
    methods.main(["--out", str(page)])
    assert page.read_text(encoding="utf-8") == text
    monkeypatch.setattr(methods, "LABELS", ("Nothing",))
    with pytest.raises(SystemExit) as stop:
        methods.main(["--out", str(page)])
    assert stop.value.code == 2
    assert page.read_text(encoding="utf-8"), "an error must not empty the page"
    err = capsys.readouterr().err
    assert err.startswith("methods: error: ngt.potential: its docstring lacks a paragraph")
