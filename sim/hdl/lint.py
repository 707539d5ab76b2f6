"""The waivers that come with a Verilog file: what Verilator's lint says of it, and why that is harmless."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from .build import verilator_root
from .verilog import yosys

__all__ = ["lint", "waivers"]

#: Rules of Verilator about the style of generated text, with what makes each harmless here. All other warnings count.
#: Verilator refuses the whole file if it names a rule that it does not know, so every rule is one of the oldest
#: Verilator in ``docs/integration.md``, "Versions of tools".
_RULES = {
    "CMPCONST": "Of comparisons with every value in turn, the last may always come out the same.",
    "DECLFILENAME": "All modules are in one file.",
    "UNOPTFLAT": "A payload is one vector whose bits go different ways; Yosys checks bit by bit that there is no loop.",
    "UNSIGNED": "Of comparisons with every value in turn, the first may always come out the same.",
    "UNUSEDSIGNAL": "Of a vector, or of what a module is given, some bits may have no use.",
    "VARHIDDEN": "A signal may have the name of an instance in the module above.",
    "WIDTH": "Amaranth extends and truncates by the rules of Verilog. Newer names: WIDTHEXPAND, WIDTHTRUNC.",
}
#: The same by the text of the warning, for rules that the oldest Verilator does not know.
_MESSAGES = {
    "Procedural assignment to declaration with initial value": "Registers have power-on values. Rule PROCASSINIT."
}


def waivers(name):
    """Verilator's configuration for ``name.v``: with it ``verilator --lint-only -Wall name.vlt name.v`` is silent."""
    lines = ["`verilator_config", f"// What Verilator warns of in {name}.v, each with the reason why it may."]
    for rule, reason in _RULES.items():
        lines += ["", f"// {reason}", f'lint_off -rule {rule} -file "*{name}.v"']
    for message, reason in _MESSAGES.items():
        lines += ["", f"// {reason}", f'lint_off -file "*{name}.v" -match "*{message}*"']
    return "\n".join(lines) + "\n"


_MEMORY_DROPPED = re.compile(r"Replacing memory \\(\S+) with list of registers. See \S+:(\d+)")
_INITIAL = re.compile(r"^  initial begin.*?^  end\n", re.MULTILINE | re.DOTALL)
_SHIFTED = re.compile(r"^  assign (\S+) += ?\d+'h[0-9a-f]+ >> .*$", re.MULTILINE)
_WARNING = re.compile(r"^%(?:Error|Warning)[^\n]*", re.MULTILINE)


def lint(path, top):
    """Everything that the two tools, and we, find wrong with the Verilog file ``path``, one line each.

    Parameters
    ----------
    path : Path
    top : str
        Name of the top module.
    """
    path = Path(path)
    return [*_shifted_constants(path.read_text()), *_verilator(path, top), *_yosys(path, top)]


def _shifted_constants(text):
    """Bits that are looked up in a constant: Verilator gets an OR of them wrong; see ``hw/lib/logic.py``."""
    for module in text.split("endmodule"):
        for match in _SHIFTED.finditer(module):
            if re.search(rf"wire {re.escape(match[1])} ?;", module):
                yield f"Verilator may get wrong: {match[0].strip()}"


def _verilator(path, top):
    root = verilator_root()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        waived = Path(folder) / "waivers.vlt"
        waived.write_text(waivers(path.stem))
        files = [str(waived), str(path)]
        command = [str(root / "bin" / "verilator_bin"), "--lint-only", "-Wall", "--top-module", top, *files]
        environment = os.environ | {"VERILATOR_ROOT": str(root)}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return _WARNING.findall(run.stderr) or ([f"Verilator: status {run.returncode}"] if run.returncode else [])


def _yosys(path, top):
    # Power-on values play no part in the check, and Yosys takes a minute for those of a large memory.
    text = _INITIAL.sub("", path.read_text())
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        (Path(folder) / path.name).write_text(text)
        run = yosys(folder, f"read_verilog {path.name}\nhierarchy -check -top {top}\nproc\ncheck -assert")
    lines = (run.stdout + run.stderr).splitlines()
    found = [line for line in lines if re.match("Warning|.*ERROR", line) and not _harmless(line, text)]
    return found or ([f"Yosys: status {run.returncode}"] if run.returncode else [])


def _harmless(warning, text):
    """Whether Yosys is warning of a memory of one word, which is a register indeed."""
    memory = _MEMORY_DROPPED.search(warning)
    if not memory:
        return False
    # Another module may have a larger memory of the same name.
    before = text.splitlines()[: int(memory[2])]
    declared = re.compile(rf" *reg \[[^]]+\] \\?{re.escape(memory[1])} ?\[(\d+):0\]")
    return next(filter(None, map(declared.match, reversed(before))))[1] == "0"
