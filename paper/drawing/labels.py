"""Names of a method's variants for legends, such as `NGT (Kaiming head)`.

The brackets hold the settings in which the variants in the figure differ.
"""

from collections.abc import Sequence

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import find_method, method_label
from ngt.text import label_fault
from paper.numbers import variants
from paper.numbers.variants import Settings

PAIRING = {
    "huber": "Huber",
    "mse_softmax": "MSE-softmax",
    "hl_gauss": "HL-Gauss",
    "l1": "L1",
}
WORDS = {
    "params.pairing": PAIRING,
    "params.spectral_norm": {"true": "spectral norm", "false": "no spectral norm"},
    "params.head_init": {
        "orthogonal": "orthogonal head",
        "kaiming": "Kaiming head",
        "uniform": "uniform head",
    },
}
SIGMAS = ("params.sigma_expert", "params.sigma_agent")  # used only by HL-Gauss
MAX_SETTINGS = 3  # maximum number of settings in a legend name


def labels(config: Config, methods: Sequence[str], envs: Sequence[str]) -> dict[str, str]:
    """Return the name of each method for a legend, made of the settings that differ on an env.

    Return the config's labels instead if

    - the methods are not variants of one method
    - the methods differ in settings outside `params`, or in more than MAX_SETTINGS settings
    - two names would be the same, or figures cannot show a name
    """
    own_labels = {name: method_label(config, name) for name in methods}
    roots = {_root(config, name) for name in methods}
    settings = {
        name: [variants.settings(variants.cell(config, env, name)) for env in envs]
        for name in methods
    }
    different = _different(list(settings.values()))
    in_params = all(name.startswith("params.") for name in different)
    if len(roots) > 1 or not in_params or len(different) > MAX_SETTINGS:
        return own_labels
    words = {
        name: " or ".join(dict.fromkeys(describe(different, cell) for cell in cells))
        for name, cells in settings.items()
    }
    told = all(words.values()) and len(set(words.values())) == len(words)
    # A setting of a user's method may have any text as its value.
    if not told or any(map(label_fault, words.values())):
        return own_labels
    root = method_label(config, roots.pop())
    return {name: f"{root} ({text})" for name, text in words.items()}


def _different(methods: Sequence[Sequence[Settings]]) -> list[str]:
    """Return the names of the settings in which the methods differ on an env.

    methods: for each method, its settings on each env.
    """
    names = {name: None for cells in methods for cell in cells for name in cell}
    on_each_env = list(zip(*methods, strict=True))
    return [
        name
        for name in names
        if any(len({cell.get(name) for cell in cells}) > 1 for cells in on_each_env)
    ]


def check(config: Config) -> None:
    """Check that figures can typeset the mathematics in methods' labels.

    The workflow calls this before any training.
    """
    for name, method in config.methods.items():
        if "$" not in method.label:
            continue
        from matplotlib.mathtext import MathTextParser  # slow to import, and seldom needed

        try:
            MathTextParser("path").parse(method.label)
        except ValueError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UserError(
                f"methods.{name}.label: figures can't set the mathematics in {method.label!r} "
                f"({reason}); correct the part between the dollar signs"
            ) from None


def describe(names: Sequence[str], cell: Settings) -> str:
    """Return a few words for the values of some settings.

    names: the settings to describe.
    cell: the values of all settings of a method on an env.
    """
    parts = []
    for name in names:
        value = cell[name][0]
        if name not in SIGMAS:
            parts.append(WORDS.get(name, {}).get(value) or f"{name.split('.')[1]} = {value}")
    if set(SIGMAS) & set(names) and cell["params.pairing"][0] == "hl_gauss":
        expert, agent = (cell[name][0] for name in SIGMAS)
        parts.append(f"σ = {expert}" if expert == agent else f"σ = {expert} expert, {agent} agent")
    return ", ".join(parts)


def _root(config: Config, method: str) -> str:
    """Return the method on which a variant is based, directly or through other variants."""
    while like := find_method(config, method).like:
        method = like
    return method
