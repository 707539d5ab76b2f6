"""Sessions: a core or a cluster that runs in a simulator; numpy arrays in, numpy arrays and cycles out.

Each is imported when it is first used: what a program of the processing engine is can be said without Amaranth.
"""

from importlib import import_module

_HOMES = {"ClusterSession": "cluster", "Session": "core"}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__():
    return __all__
