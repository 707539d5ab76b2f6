"""Spaces of an exploration: a TOML file, and the points that it means."""

import itertools
import random
import re
import tomllib
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.harness.memory_model import MAX_LATENCY, MIN_LATENCY
from tilewright.sim.hdl.settings import Setting, require_groups, settings_of
from tilewright.sim.hdl.tops import feature_list
from tilewright.spec.names import suggestion
from tilewright.spec.tmau_registers import FEATURES

from .point import Point
from .workloads import workload_names

__all__ = ["Question", "Space", "read_space"]

_KEYS = ("preset", "set", "without", "latency", "workload", "area", "sample", "seed", "least", "where")
_WHERE = re.compile(r"(\w+) (>=|<=|=) (.+)")


@dataclass(frozen=True)
class Question:
    """Which point has the least of a column among those that meet conditions.

    Attributes
    ----------
    least : str
    where : tuple of (str, str, str)
        Column, comparison, and the value as text.
    """

    least: str
    where: tuple

    def __str__(self):
        return f"least {self.least}" + "".join(f", {' '.join(each)}" for each in self.where)


@dataclass(frozen=True)
class Space:
    """What a file means.

    Attributes
    ----------
    name : str
    points : list of Point
    area : bool
        Whether the hardware is mapped.
    question : Question or None
    """

    name: str
    points: list
    area: bool
    question: Question | None


def read_space(path):
    """The :class:`Space` of a TOML file (docs/explore.md); UsageError if it means none."""
    path = Path(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        return _space(given, path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ArgumentTypeError, UsageError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def _space(given, path):
    unknown = next((key for key in given if key not in _KEYS), None)
    if unknown:
        raise UsageError(f"there is no {unknown}{suggestion(unknown, _KEYS) or ', only ' + ', '.join(_KEYS)}")
    workloads = [name for text in _listed(given, "workload", str) for name in workload_names(text, path.parent)]
    presets = _listed(given, "preset", str, ["default"])
    for preset in presets:
        if preset not in TMAU_PRESETS:
            raise UsageError(f"preset must be of {', '.join(TMAU_PRESETS)}, not {preset!r}")
    latencies = _listed(given, "latency", int, [100])
    for latency in latencies:
        if not MIN_LATENCY <= latency <= MAX_LATENCY:
            raise UsageError(f"latency must be {MIN_LATENCY} to {MAX_LATENCY}, not {latency}")
    seed = _one(given, "seed", int, 1)
    points = [
        Point(preset, tuple(itertools.chain(*settings)), latency, workload, seed)
        for preset, *settings, latency, workload in itertools.product(
            presets, *_settings(given), latencies, dict.fromkeys(workloads)
        )
    ]
    require_groups({one for point in points for one in point.settings},
                   dict.fromkeys(group for point in points for group in point.kind.groups))  # fmt: skip
    for paths in {tuple(one.path for one in point.settings) for point in points}:
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            raise UsageError(f"{twice} is set twice")
    count = _one(given, "sample", int, len(points))
    if not 1 <= count <= len(points):
        raise UsageError(f"sample must be 1 to {len(points)}, the points of the grid, not {count}")
    chosen = sorted(random.Random(seed).sample(range(len(points)), count))
    question = None
    if "least" in given or "where" in given:
        question = Question(_one(given, "least", str), tuple(map(_condition, _listed(given, "where", str, []))))
    return Space(path.stem, [points[number] for number in chosen], _one(given, "area", bool, False), question)


def _settings(given):
    """Tuples of settings to choose one of each: those of each parameter, or of each text, and the features."""
    changes = given.get("set", {})
    if isinstance(changes, dict):
        # A name without quotes is a table of its group.
        flat = {f"{group}.{name}": value[name] for group, value in changes.items() if isinstance(value, dict)
                for name in value}  # fmt: skip
        flat |= {path: value for path, value in changes.items() if not isinstance(value, dict)}
        for path in flat:
            yield [settings_of(f"{path}={_spoken(value)}") for value in _listed(flat, path, (bool, int, str))]
    else:
        yield [settings_of(text) if text else () for text in _listed(given, "set", str)]
    if without := _listed(given, "without", str, []):
        yield [_lacking(names) for names in without]


def _spoken(value):
    return str(value).lower() if isinstance(value, bool) else value


def _lacking(names):
    left_out = feature_list(names) if names else ()
    kept = tuple(name for name in FEATURES if name not in left_out)
    return (Setting("tmau", "features", kept),) if left_out else ()


def _condition(text):
    match = _WHERE.fullmatch(text)
    if not match:
        raise UsageError(f"where must be a column, >=, <= or =, and a value, as 'utilisation >= 95', not {text!r}")
    return match.groups()


_MISSING = object()


def _one(given, key, kind, default=_MISSING):
    value = given.get(key, default)
    if value is _MISSING:
        raise UsageError(f"{key} is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{key} must be {kind.__name__}, not {value!r}")
    return value


def _listed(given, key, kind, default=_MISSING):
    """Values of a key, which has one or a list."""
    value = given.get(key, default)
    if value is _MISSING:
        raise UsageError(f"{key} is missing")
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, kind) or (kind is int and isinstance(one, bool)):
            raise UsageError(f"{key} must have values of {getattr(kind, '__name__', 'numbers, texts, true or false')}, "
                             f"not {one!r}")  # fmt: skip
    if not values and default is _MISSING:
        raise UsageError(f"{key} must have a value")
    return list(dict.fromkeys(values))
