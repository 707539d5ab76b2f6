"""A design whose payloads mean nothing while their ``valid`` is low, and which watches that no handshake notices.

On a bus of others an idle payload is whatever was there last, and X before the first transfer. A ``ready`` or ``valid``
that depends on it may differ from run to run, and is X in a four-state simulator.
"""

from amaranth.hdl import Value

from .verilog import conventional_ports

__all__ = ["GARBAGE", "with_idle_payloads"]

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
