"""Mutants of the devices of proofs, and which of them break a property."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from tilewright.errors import UsageError

from .formal import run_tool
from .mutants import SELECT, SELECT_WIDTH, mutate

__all__ = ["Proof", "proofs_left", "survivors_of_proof"]

# A memory whose output register has a reset loses that before anything is changed: the solver has no such memory.
_READ = "read_rtlil {source}\nprep -top top\nmemory_nordff\nasync2sync"
# Commands of SymbiYosys between the design and the solver.
_WRITE = """\
memory_nordff
chformal -lower
formalff -clk2ff -ff2anyinit -hierarchy
async2sync
dffunmap
write_smt2 -wires {target}"""


class Proof(NamedTuple):
    """A proof that should fail.

    Attributes
    ----------
    name : str
        Its folder.
    depth : int
        Cycles from the start within which it should.
    """

    name: str
    depth: int


_DEPTH = re.compile(r"^depth (\d+)$", re.MULTILINE)
_MODULES = re.compile(r"^module \\(top\.dut[.\S]*)", re.MULTILINE)
_LEAST_DEPTH = 8  # cycles of an induction are few, and show little from the start
_MOST_SECONDS = 120  # for a mutant: one that takes longer counts as not noticed


def proofs_left(folder):
    """The proofs of a device that ``prove`` has left in a folder; UsageError if there are none."""
    found = []
    for path in sorted(Path(folder).glob("*/run.sby")):
        text = path.read_text()
        if "mode cover" not in text and _MODULES.search((path.parent / "top.il").read_text()):
            found.append(Proof(path.parent.name, max(int(_DEPTH.search(text)[1]), _LEAST_DEPTH)))
    if not found:
        raise UsageError(f"there are no proofs in {folder}: `make test T=tests/formal` leaves them there")
    return found


def survivors_of_proof(folder, proof, count, seed):
    """Mutants of a proof's device, and those that break none of its properties."""
    text = (Path(folder) / proof.name / "top.il").read_text()
    modules = list(dict.fromkeys(_MODULES.findall(text)))
    smt2, mutants = mutate(text, read=_READ, modules=modules, count=count, seed=seed, write=_WRITE)
    if not mutants:  # all that were drawn change no logic, and the design has no input that chooses one
        return 0, []
    with tempfile.TemporaryDirectory(prefix="tilewright-") as place:
        (Path(place) / "design.smt2").write_text(smt2)
        if not _holds(place, proof, 0):
            raise RuntimeError(f"the proof {proof.name} fails without any mutant")
        return len(mutants), [mutant for mutant in mutants if _holds(place, proof, mutant.number)]


def _holds(folder, proof, number):
    """Whether every property holds with this mutant."""
    (Path(folder) / "select.smtc").write_text(f"always\nassume (= [{SELECT}] #b{number:0{SELECT_WIDTH}b})\n")
    options = ["-s", "yices", "-t", str(proof.depth), "--noprogress", "--smtc", "select.smtc"]
    try:
        run = run_tool("smtbmc", *options, "design.smt2", cwd=folder, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        if number:
            return True
        raise RuntimeError(f"{proof.depth} cycles of the proof {proof.name} take over {_MOST_SECONDS} s") from None
    if "Status: PASSED" in run.stdout:
        return True
    if "Status: FAILED" in run.stdout:
        return False
    raise RuntimeError(f"the solver gave no answer: {(run.stderr + run.stdout).strip()[-300:]}")
