"""Legend names of variants: what they share and, in brackets, where their settings differ."""

from __future__ import annotations

from collections.abc import Sequence

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import find_method, method_label
from ngt.text import label_fault
from paper.numbers import variants
from paper.numbers.variants import Settings

PAIRING = {"huber": "Huber", "mse_softmax": "MSE-softmax", "hl_gauss": "HL-Gauss"}
WORDS = {
    "params.pairing": PAIRING,
    "params.spectral_norm": {"true": "spectral norm", "false": "no spectral norm"},
    "params.head_init": {
        "orthogonal": "orthogonal head", "kaiming": "Kaiming head", "uniform": "uniform head",
    },
}  # fmt: skip
SIGMAS = ("params.sigma_expert", "params.sigma_agent")  # of HL-Gauss alone
MOST = 3  # settings that a legend has room for


def labels(config: Config, methods: Sequence[str], envs: Sequence[str]) -> dict[str, str]:
    """What a legend calls methods of one kin, by the settings that they have on the envs.

    The config's own labels where the methods are not like one, where their settings differ outside
    `params` or in more than MOST, and where words would not tell them apart.
    """
    plain = {name: method_label(config, name) for name in methods}
    kin = {_root(config, name) for name in methods}
    of = {
        name: [variants.settings(variants.cell(config, env, name)) for env in envs]
        for name in methods
    }
    differ = [
        setting
        for setting in {name: None for cells in of.values() for cell in cells for name in cell}
        if any(
            len({cell.get(setting) for cell in there}) > 1
            for there in zip(*of.values(), strict=True)
        )
    ]
    params = all(setting.startswith("params.") for setting in differ)
    if len(kin) > 1 or not params or len(differ) > MOST:
        return plain
    words = {
        name: " or ".join(dict.fromkeys(describe(differ, cell) for cell in cells))
        for name, cells in of.items()
    }
    if not all(words.values()) or len(set(words.values())) < len(words):
        return plain
    if any(map(label_fault, words.values())):  # a parameter may be any text
        return plain
    base = method_label(config, kin.pop())
    return {name: f"{base} ({text})" for name, text in words.items()}


def check(config: Config) -> None:
    """Check that figures can set the mathematics in labels, before anything is trained for them."""
    for name, method in config.methods.items():
        if "$" not in method.label:
            continue
        from matplotlib.mathtext import MathTextParser  # slow to import, and seldom needed

        try:
            MathTextParser("path").parse(method.label)
        except ValueError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UserError(
                f"methods.{name}.label: {method.label!r} is no mathematics that figures can set "
                f"({reason}); mend what stands between the dollar signs"
            ) from None


def describe(differ: Sequence[str], cell: Settings) -> str:
    """A cell's values of some settings, in a few words."""
    parts = []
    for name in differ:
        value = cell[name][0]
        if name not in SIGMAS:
            parts.append(WORDS.get(name, {}).get(value) or f"{name.split('.')[1]} = {value}")
    if set(SIGMAS) & set(differ) and cell["params.pairing"][0] == "hl_gauss":
        expert, agent = (cell[name][0] for name in SIGMAS)
        parts.append(f"σ = {expert}" if expert == agent else f"σ = {expert} expert, {agent} agent")
    return ", ".join(parts)


def _root(config: Config, method: str) -> str:
    """The method at the end of `like`."""
    while like := find_method(config, method).like:
        method = like
    return method
