"""Hardware that powers up with unknown values: only what a reset sets is known."""

import re
from dataclasses import replace

__all__ = ["top_without_power_on_values", "without_power_on_values"]

#: Modules of the hardware proper; what is around it in a simulation keeps its power-on values.
_MODULE = re.compile(r"^module \\harness\.dut.*?^endmodule$", re.MULTILINE | re.DOTALL)
_ANY_MODULE = re.compile(r"^module .*?^endmodule$", re.MULTILINE | re.DOTALL)
_REGISTER = re.compile(r"^(  reg (?:\[[^]]*\] )?(?:\\\S+ |\w+)) = [^;]*;", re.MULTILINE)
_MEMORY = re.compile(r"^  initial begin.*?^  end\n", re.MULTILINE | re.DOTALL)
# A word of a memory in such a block, and one that is written in operation: address and part may be any expression.
_WORD = re.compile(r"(\\\S+ |\w+)\[\w+\] = ")
_WRITTEN = re.compile(r"^ +(?:if \(.*?\) *|always .*?\) *)*(\\\S+ |\w+)\[.*?\] <= ", re.MULTILINE)
# The monitors take power-on for the end of a reset; here the first reset is yet to come.
_AFTER_RESET = "reg after_reset = 1'h1;"


def without_power_on_values(design):
    """The ``Design`` with registers and memories unknown until reset or written; a table that is only read stays."""
    verilog, forgotten = _forget(_MODULE, design.verilog)
    if not forgotten or _AFTER_RESET not in verilog:
        raise ValueError("the design is not a subsystem in its harness")
    verilog = verilog.replace(_AFTER_RESET, _AFTER_RESET.replace("1'h1", "1'h0"))
    return replace(design, verilog=verilog)


def top_without_power_on_values(verilog):
    """The same of the Verilog of a top, as ``top_verilog`` gives it."""
    verilog, forgotten = _forget(_ANY_MODULE, verilog)
    if not forgotten:
        raise ValueError("the Verilog has no registers with power-on values")
    return verilog


def _forget(modules, verilog):
    """The Verilog without power-on values in what matches ``modules``, and how many were left out."""
    forgotten = 0

    def forget(match):
        nonlocal forgotten
        module = match[0]
        written = {name.strip() for name in _WRITTEN.findall(module)}

        def without(block):
            return "" if _WORD.search(block[0])[1].strip() in written else block[0]

        text = _MEMORY.sub(without, module)
        memories = text != module
        text, registers = _REGISTER.subn(r"\1;", text)
        forgotten += memories + registers
        return text

    return modules.sub(forget, verilog), forgotten
