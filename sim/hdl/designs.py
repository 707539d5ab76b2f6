"""Designs that are made once: elaborating a large one takes seconds, and its sources rarely change."""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from ..files import writable, write_atomically
from ..progress import report
from .build import CACHE
from .testbench import Array, Design

__all__ = ["cached_design", "content_key"]

#: Packages whose sources decide what a design is.
_PACKAGES = ("hw", "golden/spec", "sim/harness", "sim/hdl")
_TOOLS = ("amaranth", "pyosys")


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
    file = CACHE / "designs" / f"{content_key(*key)}.json"
    if file.exists():
        fields = json.loads(file.read_text())
        fields["arrays"] = {name: Array(**array) for name, array in fields["arrays"].items()}
        return Design(**fields)
    with writable(file.parent):
        report("elaboration")
        design = make()
        write_atomically(file, json.dumps(asdict(design)))
    return design


def content_key(*key):
    """A word that is another one when ``key``, the sources of the hardware or a tool that makes Verilog is."""
    digest = hashlib.sha256(repr([*key, *map(importlib.metadata.version, _TOOLS)]).encode())
    for path in sorted(_sources()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _sources():
    root = Path(__file__).parents[2]
    return (path for package in _PACKAGES for path in (root / package).rglob("*.py"))
