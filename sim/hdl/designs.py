"""Designs that are made once: elaborating a large one takes seconds, and its sources rarely change."""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from tilewright.files import built_once
from tilewright.progress import report

from .build import CACHE
from .testbench import Array, Design

__all__ = ["cached_design", "kept_text"]

#: Packages whose sources decide what a design is.
_PACKAGES = ("hw", "spec", "sim/harness", "sim/hdl", "board")
_TOOLS = ("amaranth", "pyosys")
_TEXT = "text"


def cached_design(make, *key):
    """The design that ``make()`` returns, or the same from an earlier call.

    Parameters
    ----------
    make : callable
        Returns a ``Design`` that depends on ``key``, the hardware and the harness alone.
    *key
        Values whose ``repr`` says all.

    Raises
    ------
    HostError
        If it cannot be kept; one sentence.
    """

    def text():
        report("elaboration")
        return json.dumps(asdict(make()))

    fields = json.loads(kept_text(text, "design", *key))
    fields["arrays"] = {name: Array(**array) for name, array in fields["arrays"].items()}
    return Design(**fields)


def kept_text(make, *key):
    """The text that ``make()`` returns, or has returned in an earlier call; who needs it at the same time waits.

    Parameters
    ----------
    make : callable
        Returns a text that depends on ``key``, the sources of the hardware and the tools that make Verilog alone.
    *key
        Values whose ``repr`` says all.

    Raises
    ------
    HostError
        If it cannot be kept; one sentence.
    """
    folder = CACHE.resolve() / "designs" / _content_key(*key)
    built_once(folder, lambda draft: (draft / _TEXT).write_text(make()))
    return (folder / _TEXT).read_text()


def _content_key(*key):
    """A word that is another one when ``key``, the sources of the hardware or a tool that makes Verilog is."""
    digest = hashlib.sha256(repr([*key, *map(importlib.metadata.version, _TOOLS)]).encode())
    for path in sorted(_sources()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _sources():
    root = Path(__file__).parents[2]
    return (path for package in _PACKAGES for path in (root / package).rglob("*.py"))
