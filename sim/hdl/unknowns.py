"""Hardware that powers up with unknown values: only what a reset sets is known."""

import re
from dataclasses import replace

from amaranth.hdl import Value

from .verilog import conventional_ports

__all__ = ["GARBAGE", "top_without_power_on_values", "with_idle_payloads", "without_power_on_values"]

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


#: What idle payloads are made of, by simulator: X, or bits that change in the middle of every cycle.
GARBAGE = {"icarus": "1'bx", "verilator": "1'b0"}

_TEMPLATE = """
module {name} (
  {ports}
);
  {directions}
  reg garbage = {garbage};
  reg armed = 1'b0;
  wire [{last}:0] handshakes = {{{handshakes}}};
  reg [{last}:0] earlier;
  {inner} dut (
    {connections}
  );
  always @(negedge clk) begin
    earlier = handshakes;
    garbage = ~garbage;
  end
  wire differs = ^handshakes === 1'bx || handshakes !== earlier;
  always @(posedge clk) begin
    if (armed && !rst && differs) begin
      $display("Error: a handshake depends on an idle payload: %b, then %b of {order}", earlier, handshakes);
      $fatal;
    end
    armed <= armed | rst;
  end
endmodule
"""


def with_idle_payloads(verilog, component, inner, name, simulator):
    """``verilog`` and a module around it with the same ports, in which idle payloads are garbage.

    The simulation ends with an error when an output called ``…valid`` or ``…ready`` is unknown after the first reset,
    or changes with the garbage in the middle of a cycle. Inputs must change only at rising edges of ``clk``.

    Parameters
    ----------
    verilog : str
        With a module ``inner``, that of ``component``.
    component : amaranth.lib.wiring.Component
    inner, name : str
        Names of its module and of the new one.
    simulator : str
        One of :data:`GARBAGE`.
    """
    ports = {port: (len(Value.cast(value)), way.value) for port, (value, way) in conventional_ports(component).items()}
    offers = [port for port in ports if port.endswith("valid")]
    connections = [f".{port}({_masked(port, ports, offers)})" for port in ports]
    handshakes = [port for port, (_, way) in ports.items() if way == "output" and port.endswith(("valid", "ready"))]
    module = _TEMPLATE.format(
        name=name,
        inner=inner,
        ports=", ".join(["clk", "rst", *ports]),
        directions="\n  ".join(
            ["input clk, rst;", *(f"{way} {_range(width)}{port};" for port, (width, way) in ports.items())]
        ),
        garbage=GARBAGE[simulator],
        last=len(handshakes) - 1,
        handshakes=", ".join(handshakes),
        order=" ".join(handshakes),
        connections=",\n    ".join([".clk(clk)", ".rst(rst)", *connections]),
    )
    return verilog + module


def _range(width):
    return f"[{width - 1}:0] " if width > 1 else ""


def _masked(port, ports, offers):
    """What drives ``port`` inside: garbage while the ``valid`` that it belongs to is low."""
    width, way = ports[port]
    if way == "output" or port.endswith(("valid", "ready")):
        return port
    offer = next((offer for offer in offers if port.startswith(offer.removesuffix("valid"))), None)
    if offer is None or ports[offer][1] == "output":
        return port
    return f"{offer} ? {port} : {{{width}{{garbage}}}}"
