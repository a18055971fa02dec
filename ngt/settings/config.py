"""Every setting and its default, as frozen dataclasses: the only place where a default stands.

A config file holds differences. They are merged (base <- scale <- user), parsed strictly (an
unknown key or a wrong type is an error that names the key) and resolved per cell: shared <- env
<- method <- (method, env).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ngt.errors import UserError, suggest
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.settings.schema import check_partial, describe, opt, parse
from ngt.text import check_label, check_name

Mode = Literal["state-action", "state-state", "state-only"]
MODES: tuple[Mode, ...] = typing.get_args(Mode)


@dataclass(frozen=True)
class SacConfig:
    """Soft actor-critic. Values: the paper's table of defaults unless said."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of actor and critics", 1)
    activation: Literal["relu", "silu"] = opt("relu", "of actor and critics")
    layer_norm: bool = opt(False, "before each activation of actor and critics")
    head_gain: float = opt(1.0, "factor on the orthogonal init of the output layers", 0)
    gamma: float = opt(0.99, "discount", 0, 1)
    tau: float = opt(0.005, "weight of the online critics in the target's moving average", 0, 1)
    lr_actor: float = opt(3e-4, "Adam", 0)
    lr_critic: float = opt(1e-3, "Adam", 0)
    lr_alpha: float = opt(3e-4, "Adam; not in the paper, the usual value", 0)
    alpha: float = opt(0.2, "initial temperature; with softplus, that is softplus(log(this))", 1e-8)
    alpha_form: Literal["exp", "softplus"] = opt(
        "exp", "alpha as a function of what is learned; with softplus its loss is linear in alpha"
    )
    learn_alpha: bool = opt(True, "adapt the temperature to the target entropy")
    target_entropy_scale: float = opt(1.0, "target entropy is minus this times |A|, tanh units")
    actor_grad_clip: float = opt(20.0, "largest gradient norm of the actor, per run", 0)
    critic_grad_clip: float | None = opt(None, "of both critics together, per run; null: none", 0)
    log_std_min: float = opt(-5.0, "log-std is squashed by tanh into this range")
    log_std_max: float = opt(2.0, "log-std is squashed by tanh into this range")

    def __post_init__(self) -> None:
        """The range must be one."""
        if self.log_std_min >= self.log_std_max:
            raise UserError(
                f"sac.log_std_max: must be above sac.log_std_min = {self.log_std_min}, "
                f"found {self.log_std_max}"
            )


@dataclass(frozen=True)
class TrainConfig:
    """The loop of Algorithm 1. Values: the paper's table of defaults unless said."""

    steps: int = opt(10_000_000, "env steps; gradient steps where a method uses no env", 1)
    num_envs: int = opt(4, "envs in lockstep; the step counter goes up by this", 1)
    updates_per_step: int = opt(1, "reward and agent updates per vector step", 1)
    learning_starts: int = opt(0, "env steps of uniform random actions before the first update", 0)
    batch: int = opt(256, "transitions per update, from the agent and from the demonstrations", 1)
    buffer: int = opt(4_000_000, "transitions kept", 1)
    eval_every: int = opt(10_000, "env steps between evaluations", 1)
    eval_episodes: int = opt(10, "deterministic episodes per evaluation, each from a new seed", 1)
    log_every: int = opt(10_000, "env steps between rows of train.csv", 1)
    keep: Literal["last", "best"] = opt("last", "which policy is saved; best by evaluation return")

    def __post_init__(self) -> None:
        """The buffer takes in one vector step at a time."""
        if self.buffer < self.num_envs:
            raise UserError(
                f"train.buffer: must be at least train.num_envs = {self.num_envs}, "
                f"found {self.buffer}"
            )


@dataclass(frozen=True)
class CellConfig:
    """All that the runs of a pack share; they differ in demonstrations and seed."""

    env: str
    method: str
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    params: dict[str, Any] = field(default_factory=dict)  # of the model's own Config, complete
    mode: Mode = opt("state-action", "what the reward model sees: (s,a), (s,s') or (s)")
    rate: int = opt(20, "every rate-th transition of a demonstration is kept", 1)
    terminate_when_unhealthy: bool = opt(True, "Gymnasium's default; the paper is silent")
    normalise_obs: bool = opt(False, "running mean and std of the agent's observations")
    demos_source: str = opt("", "hash of the expert's config, or of the demonstrations' file")
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


# Sections and fields that an env, a method or a (method, env) pair may change.
@dataclass(frozen=True)
class Override:
    """Differences for one env, one method, or one method on one env."""

    sac: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    terminate_when_unhealthy: bool | None = opt(None, "as in the cell")
    normalise_obs: bool | None = opt(None, "as in the cell")


@dataclass(frozen=True)
class ExpertConfig(Override):
    """The expert: SAC on the env's own reward, the agent's settings with these differences."""

    seed: int = opt(1000, "another seed than any agent's", 0)
    episodes: int = opt(16, "episodes recorded; their mean return is the normaliser's 1", 1)


@dataclass(frozen=True)
class MethodEnvConfig(Override):
    """A method's differences on one env."""

    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodConfig(MethodEnvConfig):
    """A method, or a named variant of one (`like`)."""

    label: str = opt("", "name in figures; the key where empty")
    like: str = opt("", "another method that this one differs from")
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    rate: int | None = opt(None, "fixed subsampling rate, whatever the figure asks", 1)
    envs: dict[str, MethodEnvConfig] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvConfig(Override):
    """An env's differences, for the agent and for its expert."""

    expert: dict[str, Any] = field(default_factory=dict)
    demos: str = opt(
        "",
        "a file of demonstrations of one's own, looked for in the working folder, then in the "
        "checkout; the expert's where empty",
    )


@dataclass(frozen=True)
class FigureConfig:
    """The runs behind one artefact: the product of its axes. A scale without it says null."""

    methods: tuple[str, ...] = ()
    beside: tuple[str, ...] = opt((), "methods drawn too, whose runs another artefact counts")
    envs: tuple[str, ...] = ()
    demos: tuple[int, ...] = opt((1, 4, 11), "numbers of demonstrations", 1)
    seeds: tuple[int, ...] = opt((0, 1, 2, 3), "seeds", 0)
    modes: tuple[Mode, ...] = ("state-action",)
    rates: tuple[int, ...] = opt((20,), "subsampling rates", 1)


@dataclass(frozen=True)
class StatisticsConfig:
    """The stratified bootstrap behind every interval: seeds are resampled within each task."""

    # At 2000 an end of an interval moves by 2% of its width from seed to seed. rliable's 50 000
    # would take hours: a probability of improvement over 18 tasks is 9 ms a repetition.
    reps: int = opt(2000, "repetitions", 1)
    seed: int = opt(0, "of the draws", 0)


@dataclass(frozen=True)
class Config:
    """The whole workflow's settings at one scale."""

    scale: str = "quick"
    imports: tuple[str, ...] = opt((), "modules to import first: they may register tasks")
    records: Literal["trained", "published"] = opt(
        "trained", "what figures are drawn from: runs made here, or those that ship"
    )
    demos: Literal["trained", "shipped"] = opt(
        "trained", "what is imitated: experts trained here, or those that ship in data/"
    )
    pack: int = opt(12, "most runs trained in lockstep by one job; changes no result", 1)
    checkpoint_every: int = opt(50_000, "env steps between checkpoints; changes no result", 0)
    window: int = opt(20, "evaluations whose mean is a run's final score", 1)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    terminate_when_unhealthy: bool = opt(True, "Gymnasium's default; the paper is silent")
    normalise_obs: bool = opt(False, "running mean and std of the agent's observations")
    expert: ExpertConfig = field(default_factory=ExpertConfig)
    envs: dict[str, EnvConfig] = field(default_factory=dict)
    methods: dict[str, MethodConfig] = field(default_factory=dict)
    figures: dict[str, FigureConfig] = field(default_factory=dict, metadata={"null": True})


# ---------------------------------------------------------------- loading and merging


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Deep merge of plain mappings, later ones winning; lists are replaced whole."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
                out[key] = merge(out[key], value)
            else:
                out[key] = value
    return out


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a YAML file, or a JSON one: YAML would read its 1e-05 as text."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML would keep the last of two equal keys and say nothing."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next((k for k in keys if keys.count(k) > 1), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ValueError(f"key {twice!r} stands twice in the mapping at line {line}")
            return dict(super().construct_mapping(node, deep))

    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader)
    except OSError as error:
        raise UserError(f"config file {path}: can't be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        reason = " ".join(str(error).split())
        raise UserError(f"config file {path}: not valid {kind}: {reason}") from None
    if not isinstance(data, dict):
        raise UserError(f"config file {path}: expected a mapping, found {describe(data)}")
    return data


CHECKOUT = Path(__file__).resolve().parents[2]
CONFIG_DIR = CHECKOUT / "workflow" / "config"


def load(data: Mapping[str, Any], directory: Path = CONFIG_DIR) -> Config:
    """The config of a scale: base.yaml <- <scale>.yaml <- `data`, checked whole.

    data: the user's own differences; its `scale` picks the file.
    """
    base = read_yaml(directory / "base.yaml")
    scale = data.get("scale", base.get("scale", Config.scale))
    scales = sorted(p.stem for p in directory.glob("*.yaml") if p.stem != "base")
    if scale not in scales:
        raise UserError(f"scale: {scale!r} is not known; {suggest(str(scale), scales)}")
    merged = merge(base, read_yaml(directory / f"{scale}.yaml"), data)
    for f in dataclasses.fields(Config):
        if f.metadata.get("null") and isinstance(merged.get(f.name), dict):  # null: not here
            merged[f.name] = {k: v for k, v in merged[f.name].items() if v is not None}
    return _checked(merged)


def _checked(data: Mapping[str, Any]) -> Config:
    config: Config = parse(Config, data)
    for name in config.imports:
        import_module(name)
    check(config)
    return config


def to_file(config: Config) -> str:
    """The text of a file of complete settings, which `load_file` reads."""
    return json.dumps(dataclasses.asdict(config), indent=1) + "\n"


def load_file(path: Path) -> Config:
    """The config in a file of complete settings whose name is their hash; nothing is merged in.

    Errors: a file that was cut or changed is a UserError.
    """
    config = _checked(read_yaml(path))
    if config_hash(config) != path.stem:
        raise UserError(
            f"settings {path}: its content has hash {config_hash(config)}: the file was changed or "
            f"damaged; remove it, and the workflow writes it again"
        )
    return config


def check(config: Config) -> None:
    """Everything that can be wrong before a job starts: names, differences, model parameters."""
    check_name(config.scale, "scale")
    for name, method_entry in config.methods.items():
        check_name(name, f"methods.{name}")
        check_label(method_entry.label, f"methods.{name}.label")
    for name, figure in config.figures.items():
        _check_axes(figure, f"figures.{name}")
        for axis in ("methods", "beside"):
            for method in getattr(figure, axis):
                find_method(config, method, f"figures.{name}.{axis}")
        _check_envs(figure.envs, f"figures.{name}.envs")
    for name, method_entry in config.methods.items():
        _check_envs(method_entry.envs, f"methods.{name}.envs")
    _check_envs(config.envs, "envs")
    for env, entry in config.envs.items():
        _check_override(entry, f"envs.{env}")
        check_partial(ExpertConfig, entry.expert, f"envs.{env}.expert")
        for section, cls in (("sac", SacConfig), ("train", TrainConfig)):
            check_partial(cls, entry.expert.get(section, {}), f"envs.{env}.expert.{section}")
    _check_override(config.expert, "expert")
    for name, figure in config.figures.items():
        for env in figure.envs:
            _check_demos(config, env, max(figure.demos), f"figures.{name}.demos")
    envs = {e for figure in config.figures.values() for e in figure.envs}
    envs |= {e for method_entry in config.methods.values() for e in method_entry.envs}
    for name in config.methods:
        for env in sorted(envs) or [""]:
            model_params(config, name, env)


def _check_axes(figure: FigureConfig, where: str) -> None:
    for f in dataclasses.fields(figure):
        values = getattr(figure, f.name)
        if not values and f.name != "beside":
            raise UserError(f"{where}.{f.name}: empty; name at least one")
        twice = next((v for v in values if values.count(v) > 1), None)
        if twice is not None:
            raise UserError(f"{where}.{f.name}: {twice} stands twice; name it once")


def _check_envs(names: Iterable[str], where: str) -> None:
    for name in names:
        try:
            get_task(name)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _check_demos(config: Config, env: str, count: int, where: str) -> None:
    """Enough of them. Where none ships it is said once one is asked for: not every env need be."""
    if own_file(config, env):
        demos_source(config, env)  # it can be read
    elif config.demos == "trained":
        most = expert_config(config, env).episodes
        if count > most:
            raise UserError(
                f"{where}: {count} asked for, and the expert of {env} is recorded for {most} "
                f"episodes; raise expert.episodes"
            )
    elif shipped.ships(env):
        most = shipped.read(env)["episodes"]
        if count > most:
            raise UserError(
                f"{where}: {count} asked for, and {most} of {env} ship; ask for no more, or write "
                f"`demos: trained`"
            )


def _check_override(entry: Override, where: str) -> None:
    check_partial(SacConfig, entry.sac, f"{where}.sac")
    check_partial(TrainConfig, entry.train, f"{where}.train")


def find_method(config: Config, name: str, where: str = "method") -> MethodConfig:
    """A method's entry; UserError with the nearest names."""
    if name not in config.methods:
        raise UserError(f"{where}: {name!r} is not known; {suggest(name, list(config.methods))}")
    return config.methods[name]


def distinct_methods(config: Config) -> list[str]:
    """The methods, but for those that differ from one they are `like` in `train` alone."""
    own = [f.name for f in dataclasses.fields(MethodConfig) if f.name not in ("label", "like")]
    plain = MethodConfig()
    return [
        name for name, entry in config.methods.items()
        if not entry.like
        or not entry.train
        or any(getattr(entry, f) != getattr(plain, f) for f in own if f != "train")
    ]  # fmt: skip


def _lineage(config: Config, name: str) -> list[tuple[str, MethodConfig]]:
    """A method and those it is like, ancestors first."""
    chain: list[tuple[str, MethodConfig]] = []
    while name:
        if name in (n for n, _ in chain):
            circle = " like ".join([*(n for n, _ in reversed(chain)), name])
            raise UserError(f"methods.{name}.like: a circle, {circle}; let one name its model")
        entry = find_method(config, name, f"methods.{chain[0][0]}.like" if chain else "method")
        chain.insert(0, (name, entry))
        name = entry.like
    return chain


def _layers(config: Config, method: str, env: str) -> Iterator[tuple[str, MethodEnvConfig]]:
    for name, entry in _lineage(config, method):
        yield f"methods.{name}", entry
        if env in entry.envs:
            yield f"methods.{name}.envs.{env}", entry.envs[env]


def import_module(name: str) -> None:
    """Import a user's module, for what it registers."""
    try:
        importlib.import_module(name)
    except Exception as error:  # whatever its code raises
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(
            f"imports: {name!r} can't be imported ({reason}); it must lie where Python looks, e.g. "
            f"in this folder"
        ) from None


def load_model(path: str, where: str) -> Any:
    """The class behind a dotted path `package.module:Class`."""
    module, _, name = path.partition(":")
    try:
        model = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever its code raises
        path_is_wrong = ModuleNotFoundError | AttributeError | TypeError | ValueError
        fix = "write package.module:Class" if isinstance(error, path_is_wrong) else "mend it"
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where}: {path!r} can't be loaded ({reason}); {fix}") from None
    if not dataclasses.is_dataclass(getattr(model, "Config", None)):
        raise UserError(f"{where}: {path!r} has no dataclass `Config`; name a RewardModel")
    return model


def model_params(config: Config, method: str, env: str) -> tuple[str, dict[str, Any]]:
    """A method's model path on an env and its complete parameters."""
    model, params = "", {}
    for where, entry in _layers(config, method, env):
        model = getattr(entry, "model", "") or model
        if not model:
            raise UserError(f"{where}.model: missing; write package.module:Class or `like`")
        _check_override(entry, where)
        check_partial(load_model(model, where).Config, entry.params, f"{where}.params")
        params.update(entry.params)
    full = parse(load_model(model, method).Config, params, f"methods.{method}.params")
    return model, dataclasses.asdict(full)


def method_rate(config: Config, method: str) -> int | None:
    """The subsampling rate that a method fixes, if it does."""
    rates = [entry.rate for _, entry in _lineage(config, method) if entry.rate is not None]
    return rates[-1] if rates else None


def method_label(config: Config, method: str) -> str:
    """The name of a method in figures."""
    return find_method(config, method).label or method


# ---------------------------------------------------------------- resolving


def _overlay(config: Config, entries: Sequence[Override]) -> dict[str, Any]:
    sac = merge(dataclasses.asdict(config.sac), *(e.sac for e in entries))
    train = merge(dataclasses.asdict(config.train), *(e.train for e in entries))
    out = {"sac": parse(SacConfig, sac, "sac"), "train": parse(TrainConfig, train, "train")}
    for name in ("terminate_when_unhealthy", "normalise_obs"):
        given = [getattr(e, name) for e in entries if getattr(e, name) is not None]
        out[name] = given[-1] if given else getattr(config, name)
    return out


def resolve(config: Config, env: str, method: str, mode: Mode, rate: int) -> CellConfig:
    """The complete settings of a cell."""
    model, params = model_params(config, method, env)
    entries: list[Override] = [config.envs[env]] if env in config.envs else []
    entries += [entry for _, entry in _layers(config, method, env)]
    return CellConfig(
        env=env, method=method, model=model, params=params, mode=mode, rate=rate,
        demos_source=demos_source(config, env),
        **_overlay(config, entries),
    )  # fmt: skip


def own_file(config: Config, env: str) -> str:
    """The user's own demonstration file for an env, or empty.

    A relative path that the working folder lacks is the checkout's, as that of a shipped scale.
    """
    file = config.envs[env].demos if env in config.envs else ""
    shipped_file = CHECKOUT / file
    return str(shipped_file) if file and not Path(file).exists() and shipped_file.exists() else file


def demos_file(config: Config, env: str) -> str:
    """The demonstrations that are there before any job: one's own, or shipped; empty if neither."""
    shipping = config.demos == "shipped"
    return own_file(config, env) or (str(shipped.DATA / env / shipped.DEMOS) if shipping else "")


def demos_source(config: Config, env: str) -> str:
    """Names an env's demonstrations: hash of their file, or of the config of their expert.

    Errors: a file that can't be read, does not ship, or is not what it was are UserErrors.
    """
    if own := own_file(config, env):
        return file_hash(Path(own), f"envs.{env}.demos")
    if config.demos == "shipped":
        return short(shipped.read(env)["files"][shipped.DEMOS])
    return config_hash(resolve_expert(config, env))


def short(sha256: str) -> str:
    """A hash as names and records have it."""
    return sha256[:16]


def file_hash(path: Path, where: str) -> str:
    """Short hash of a file's bytes."""
    try:
        return short(hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise UserError(f"{where}: {path} can't be read: {error.strerror}") from None


def expert_config(config: Config, env: str) -> ExpertConfig:
    """The expert's own differences on an env."""
    own = config.envs[env].expert if env in config.envs else {}
    return typing.cast(
        ExpertConfig,
        parse(ExpertConfig, merge(dataclasses.asdict(config.expert), own), f"envs.{env}.expert"),
    )


def resolve_expert(config: Config, env: str) -> CellConfig:
    """The complete settings of an env's expert: the agent's, on the env's own reward."""
    entries: list[Override] = [config.envs[env]] if env in config.envs else []
    return CellConfig(
        env=env, method="expert", model="ngt.reward:EnvReward",
        **_overlay(config, [*entries, expert_config(config, env)]),
    )  # fmt: skip


def expert_ships(config: Config, env: str) -> bool:
    """Whether the expert that ships was trained with these settings (new ones at defaults)."""
    if not shipped.ships(env):
        return False
    made = parse(CellConfig, shipped.read(env)["config"], f"data/{env}/{shipped.EXPERT}: config")
    return bool(made == resolve_expert(config, env))


def to_json(config: Any) -> str:
    """Canonical JSON of a config dataclass."""
    return json.dumps(dataclasses.asdict(config), sort_keys=True, separators=(",", ":"))


def config_hash(config: Any) -> str:
    """Short hash of a config: equal configs, equal hash."""
    return short(hashlib.sha256(to_json(config).encode()).hexdigest())
