"""Mutants of a block against its proof: each must lead to an assertion that fails within some cycles."""

import tempfile
from pathlib import Path

from ..formal import run_tool
from ..progress import counted
from ..usage import UsageError
from .mutants import SELECT, SELECT_WIDTH, mutate

__all__ = ["proof_file", "survivors_of_properties"]

_READ = "read_rtlil {source}\nprep -top top"
# What SymbiYosys does between the design and the solver.
_WRITE = """\
memory_nordff
chformal -lower
formalff -clk2ff -ff2anyinit -hierarchy
async2sync
dffunmap
write_smt2 -wires {target}"""


def proof_file(block, proofs):
    """The design that the block's proof has left in the folder ``proofs``; UsageError if it has not been run."""
    path = proofs / block.proof / "top.il"
    if not path.exists():
        raise UsageError(f"the proof {block.proof} must have been run once, and left in {proofs}")
    return path


def survivors_of_properties(block, count, seed, proofs):
    """Number of mutants, and those that break no property of the block's proof within ``block.depth`` cycles.

    ``proofs`` is the folder in which ``prove`` has left its runs.
    """
    proof = proof_file(block, proofs)
    modules = [f"top.{instance}" for instance in block.proved]
    smt2, mutants = mutate(proof.read_text(), read=_READ, modules=modules, count=count, seed=seed, write=_WRITE)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        (Path(folder) / "design.smt2").write_text(smt2)
        if not _holds(folder, block, 0):
            raise RuntimeError(f"the proof {block.proof} fails without any mutant")
        survivors = [mutant for mutant in counted("mutants", mutants) if _holds(folder, block, mutant.number)]
        return len(mutants), survivors


def _holds(folder, block, number):
    """Whether every property holds with this mutant."""
    (Path(folder) / "select.smtc").write_text(f"always\nassume (= [{SELECT}] #b{number:0{SELECT_WIDTH}b})\n")
    run = run_tool(
        "smtbmc", "-s", "yices", "-t", str(block.depth), "--noprogress", "--smtc", "select.smtc",
        "design.smt2", cwd=folder,
    )  # fmt: skip
    if "Status: PASSED" in run.stdout:
        return True
    if "Status: FAILED" in run.stdout:
        return False
    raise RuntimeError(f"the solver gave no answer: {(run.stderr + run.stdout).strip()[-300:]}")
