"""What the optional installs of the package bring, and whether it is there."""

import re
from importlib.metadata import PackageNotFoundError, distribution, requires
from itertools import chain

from .errors import UsageError

__all__ = ["missing", "packages", "require"]

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[^]]*)\])?[^;]*(; extra == ['\"](?P<extra>\w+)['\"])?$")


def packages(extra):
    """Names of the distributions that ``pip install 'tilewright[extra]'`` adds to the plain install, each once."""
    found = []
    for requirement in requires("tilewright"):
        match = _REQUIREMENT.match(requirement)
        if match["extra"] == extra:
            # An extra may consist of others.
            inner = (match["extras"] or "").split(",")
            found += chain(*map(packages, inner)) if match["name"] == "tilewright" else [match["name"]]
    return list(dict.fromkeys(found))


def missing(extra):
    """Those of :func:`packages` that are not installed."""
    return [name for name in packages(extra) if not _is_installed(name)]


def require(extra):
    """UsageError unless all of ``extra`` is installed."""
    absent = missing(extra)
    if absent:
        raise UsageError(f"{', '.join(absent)} must be installed: pip install 'tilewright[{extra}]'")


def _is_installed(name):
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
