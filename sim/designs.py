"""Designs that are made once: elaborating a large one takes seconds, and its sources rarely change."""

import ast
import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from .build import CACHE
from .testbench import Array, Design
from .verilog import write_atomically

__all__ = ["cached_design"]

#: Packages whose sources decide what a design is, beside the modules that make the harness.
_PACKAGES = ("hw", "golden/spec")
_TOOLS = ("amaranth", "pyosys")


def cached_design(make, *key):
    """The design that ``make()`` returns, or the same from an earlier call.

    Parameters
    ----------
    make : callable
        Returns a :class:`~tilewright.sim.testbench.Design` that depends on ``key``, the hardware and the harness alone.
    *key
        Values whose ``repr`` says all.
    """
    digest = hashlib.sha256(repr([*key, *map(importlib.metadata.version, _TOOLS)]).encode())
    for path in sorted(_sources()):
        digest.update(path.read_bytes())
    file = CACHE / "designs" / f"{digest.hexdigest()[:24]}.json"
    if file.exists():
        fields = json.loads(file.read_text())
        fields["arrays"] = {name: Array(**array) for name, array in fields["arrays"].items()}
        return Design(**fields)
    design = make()
    write_atomically(file, json.dumps(asdict(design)))
    return design


def _sources():
    root = Path(__file__).parent.parent
    files = {path for package in _PACKAGES for path in (root / package).rglob("*.py")}
    waiting = ["harness", "pe_harness", "core_harness", "testbench"]
    while waiting:
        path = root / "sim" / f"{waiting.pop()}.py"
        if path not in files:
            files.add(path)
            imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))
            waiting += [node.module for node in imports if node.level == 1]
    return files
