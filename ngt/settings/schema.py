"""Parse plain data strictly into frozen dataclasses, and make their JSON schema.

An unknown key, a wrong type or a value out of range raises an error that names the key.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, Literal

from ngt.errors import UserError, suggest

type_hints = cache(typing.get_type_hints)  # cached, since evaluating annotations is slow


def opt(default: Any, doc: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a dataclass field with a default value, a description and a range."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


def parse(cls: type, data: Any, where: str = "") -> Any:
    """Build an instance of the dataclass `cls` from plain data.

    Raise UserError if the data is wrong. The message states the key, the value and the fix.
    """
    _check_mapping(cls, data, where)
    hints = type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls)}
    values = {}
    for name, value in data.items():
        path = f"{where}.{name}" if where else str(name)
        values[name] = _value(hints[name], value, path)
        _check_range(known[name], values[name], path)
    for name, f in known.items():
        if name not in values and not _has_default(f):
            raise UserError(f"{where or cls.__name__}: key {name!r} is missing; add it")
    return cls(**values)


def check_partial(cls: type, data: Any, where: str) -> None:
    """Check that plain data contains only fields of `cls`, with valid values."""
    _check_mapping(cls, data, where)
    hints = type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls)}
    for name, value in data.items():
        path = f"{where}.{name}"
        _check_range(known[name], _value(hints[name], value, path), path)


def check_types(cls: type, where: str) -> None:
    """Check that each field of a config dataclass has a type that a config file can hold."""
    for name, hint in type_hints(cls).items():
        if not _settable(hint):
            raise UserError(
                f"{where}.{name}: a setting can't have the type {_name(hint)}; use bool, int, "
                f"float, str, Literal, tuple[T, ...], dict[str, T] or T | None"
            )


def _settable(hint: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return len(args) == 2 and args[1] is type(None) and _settable(args[0])
    if origin is tuple:
        return len(args) == 2 and args[1] is Ellipsis and _settable(args[0])
    if origin is dict:
        return args[0] is str and _settable(args[1])
    if dataclasses.is_dataclass(hint):
        return all(map(_settable, type_hints(typing.cast(type, hint)).values()))
    return origin is Literal or hint in (Any, bool, int, float, str)


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def _check_mapping(cls: type, data: Any, where: str) -> None:
    if not isinstance(data, Mapping):
        raise UserError(f"{where or 'config'}: expected a mapping, found {describe(data)}")
    known = [f.name for f in dataclasses.fields(cls)]
    for name in data:
        if name not in known:
            path = f"{where}.{name}" if where else str(name)
            raise UserError(f"{path}: unknown key; {suggest(str(name), known)}")


def _has_default(f: dataclasses.Field[Any]) -> bool:
    return f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING


TYPES: dict[type, str] = {
    str: "text",
    bool: "a truth value",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def describe(value: Any) -> str:
    """Describe a value and its type in words, for a message."""
    name = TYPES.get(type(value), type(value).__name__)
    return name if value is None else f"{name} {value!r}"


def _looks_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _value(hint: Any, value: Any, path: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):  # the only unions in configs are `T | None`
        return None if value is None else _value(args[0], value, path)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        return parse(typing.cast(type, hint), value, path)
    if origin is Literal:
        if value not in args:
            raise UserError(
                f"{path}: expected one of {', '.join(map(str, args))}, found {describe(value)}"
            )
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{path}: expected a list, found {describe(value)}; write [{value}]")
        return tuple(_value(args[0], v, f"{path}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise UserError(f"{path}: expected a mapping, found {describe(value)}")
        return {str(k): _value(args[1], v, f"{path}.{k}") for k, v in value.items()}
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e300 or isinstance(value, float) else math.inf
    if hint is str and isinstance(value, str):
        return value
    expected = {bool: "true or false", int: "an integer", float: "a number", str: "text"}[hint]
    fix = ""
    if hint in (int, float) and isinstance(value, str) and _looks_numeric(value):
        number = float(value)
        plain = str(int(number)) if number.is_integer() else "3.0e-4 for 3e-4"
        fix = f"; remove the quotes, and write {plain}: YAML reads exponents without a dot as text"
    elif hint is int and isinstance(value, float) and value.is_integer():
        fix = f"; write {int(value)}"
    raise UserError(f"{path}: expected {expected}, found {describe(value)}{fix}")


def _check_range(f: dataclasses.Field[Any], value: Any, path: str) -> None:
    low, high = f.metadata.get("low"), f.metadata.get("high")
    if value == () and low is not None:
        raise UserError(f"{path}: empty; name at least one")
    for v in value if isinstance(value, tuple) else (value,):
        if isinstance(v, int | float) and not isinstance(v, bool):
            if isinstance(v, int) and abs(v) >= 2**63:
                raise UserError(f"{path}: the number is too large; it must be below 2^63")
            if not math.isfinite(v):
                raise UserError(f"{path}: must be finite, found {v}")
            if (low is not None and v < low) or (high is not None and v > high):
                bounds = f"at least {low}" if high is None else f"in [{low}, {high}]"
                raise UserError(f"{path}: must be {bounds}, found {v}")


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested mappings. Later values override earlier values, and lists are not merged."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
                out[key] = merge(out[key], value)
            else:
                out[key] = value
    return out


def schema(cls: type) -> dict[str, Any]:
    """Return the JSON schema of a config dataclass, with defaults and descriptions."""
    hints = type_hints(cls)
    properties = {}
    for f in dataclasses.fields(cls):
        entry = _schema_type(hints[f.name])
        if "doc" in f.metadata:
            entry["description"] = f.metadata["doc"]
            entry["default"] = list(f.default) if isinstance(f.default, tuple) else f.default
            target = entry.get("items", entry)
            for bound, key in (("low", "minimum"), ("high", "maximum")):
                if f.metadata[bound] is not None:
                    target[key] = f.metadata[bound]
        if f.metadata.get("null"):  # an entry of this mapping may be null, which removes the entry
            entry["additionalProperties"]["type"] = ["object", "null"]
        properties[f.name] = entry
    return {
        "type": "object",
        "description": (cls.__doc__ or "").splitlines()[0],
        "properties": properties,
        "additionalProperties": False,
    }


def _schema_type(hint: Any) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = _schema_type(args[0])
        return {**inner, "type": [inner["type"], "null"]}
    if dataclasses.is_dataclass(hint):
        return schema(typing.cast(type, hint))
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": _schema_type(args[0])}
    if origin is dict:
        inner = {} if args[1] is Any else _schema_type(args[1])
        return {"type": "object", "additionalProperties": inner or True}
    return {"type": {int: "integer", float: "number", bool: "boolean", str: "string"}[hint]}
