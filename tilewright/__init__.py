"""Tilewright, an open tensor engine; ``hw``, ``golden``, ``sim``, ``network`` and ``tb`` are its folders."""

__all__ = ["__version__"]


def __getattr__(name):
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # takes longer than all else here

    return version("tilewright")
