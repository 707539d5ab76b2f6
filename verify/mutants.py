"""Mutants: small changes of some modules, all in one netlist, of which an input chooses one by its number."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilewright.sim.hdl.verilog import run_yosys

__all__ = ["MOST", "SELECT", "SELECT_WIDTH", "Mutant", "mutate"]

#: Name of the new input, of the mutated modules and all above them: number of the mutant that is active, or 0 for none.
SELECT = "mutant"
#: Its bits.
SELECT_WIDTH = 12
#: Mutants that a design may have.
MOST = (1 << SELECT_WIDTH) - 1

_NUMBER = re.compile(rf"-ctrl {SELECT} {SELECT_WIDTH} (\d+)")
_LEFT_OUT = re.compile(r" -port (CLK|Q) | -cell \S*\$meminit\$")
_FACTS = re.compile(r"-(module|mode|cell|port|portbit|wire|wirebit|src) (\S+)")


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes
    ----------
    number : int
        Of the mutant, from 1 on.
    facts : dict of str to str
        Description by Yosys: ``mode`` of the change, ``module``, ``cell``, ``port``, and ``wire``.
    """

    number: int
    facts: dict

    def __str__(self):
        facts = self.facts
        # The wire at a port: what a port that reads it sees is changed there alone.
        wire = f" ({facts['wire']}[{facts['wirebit']}])" if "wire" in facts else ""
        source = facts.get("src", "").removeprefix(f"{Path.cwd()}/")
        if not source.partition(":")[0].endswith(".py"):
            source = ""
        port = f"{facts['cell']}.{facts['port']}[{facts['portbit']}]{wire}"
        return f"{self.number}: {facts['mode']} {port} of {facts['module']} {source}".rstrip()


def mutate(text, *, read, modules, count, seed, write):
    """Puts mutants of some modules into a design.

    Parameters
    ----------
    text : str
        The design.
    read : str
        Yosys commands that read it from the file ``{source}`` and leave no processes in it.
    modules : sequence of str
        Names of the modules to change, as Yosys has them.
    count : int
        Largest number of mutants: a sample, as even as Yosys makes it, of all small changes.
    seed : int
        Of the sample.
    write : str
        Yosys commands that write the result to the file ``{target}``.

    Returns
    -------
    str, list of Mutant
        The result, with the input :data:`SELECT`, and what is in it.
    """
    if not 1 <= count <= MOST:
        raise ValueError(f"the number of mutants must be 1 to {MOST}, not {count!r}")
    chosen = " ".join(f"\\{module}" for module in modules)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        (Path(folder) / "source").write_text(text)
        _yosys(
            folder,
            read.format(source="source"),
            "write_rtlil design.il",
            f"mutate -list {count} -seed {seed} -ctrl {SELECT} {SELECT_WIDTH} 1 -o all.ys {chosen}",
        )
        # A changed clock is not a change of the logic, a change at the output of a register contradicts its init, and
        # the first contents of a memory are constant.
        changes = [line for line in (Path(folder) / "all.ys").read_text().splitlines() if not _LEFT_OUT.search(line)]
        _yosys(folder, "read_rtlil design.il", *changes, write.format(target="target"))
        made = [Mutant(int(_NUMBER.search(line)[1]), dict(_FACTS.findall(line))) for line in changes]
        return (Path(folder) / "target").read_text(), made


def _yosys(folder, *commands):
    run_yosys(folder, "\n".join(commands), "make mutants")
