"""The ports of a top that belong together under the definition of a bus: AXI, streams, clock, reset, interrupts."""

from dataclasses import dataclass, field
from itertools import product

from amaranth.lib import stream, wiring

from tilewright.hw.bus.axi4 import Axi4Signature
from tilewright.hw.bus.axi4_lite import Axi4LiteSignature

__all__ = ["BusEntry", "buses_of"]

_ARM = ("amba.com", "AMBA4")
#: Definitions that Vivado brings and other tools take: nobody has standardised any for single signals.
_SIGNAL = ("xilinx.com", "signal")
_STREAM = {"valid": "TVALID", "ready": "TREADY", "payload": "TDATA"}


@dataclass(frozen=True)
class BusEntry:
    """A bus interface.

    Attributes
    ----------
    name : str
        Of the interface, and with what the names of its ports begin.
    definition : tuple of str
        Vendor, library, name and version of the bus definition.
    is_master : bool
        Whether it makes the requests, or sends.
    ports : dict
        Logical names by the names of ports.
    member : str
        The member of the component that it belongs to.
    parameters : dict
        Strings by name, which the definition asks for.
    """

    name: str
    definition: tuple[str, str, str, str]
    is_master: bool
    ports: dict[str, str]
    member: str
    parameters: dict[str, str] = field(default_factory=dict)


def buses_of(component):
    """Every bus interface of ``component``, clock and reset first, as a list of BusEntry."""
    buses = list(_within(component.signature, ""))
    associated = ":".join(bus.name for bus in buses if bus.definition[0] == _ARM[0])
    clock = {"ASSOCIATED_BUSIF": associated, "ASSOCIATED_RESET": "rst"}
    return [
        _signal("clk", "clock", "CLK", False, clock),
        _signal("rst", "reset", "RST", False, {"POLARITY": "ACTIVE_HIGH"}),
        *buses,
    ]


def _signal(name, kind, logical, is_master, parameters):
    return BusEntry(name, (*_SIGNAL, kind, "1.0"), is_master, {name: logical}, name, parameters)


def _within(signature, prefix):
    for member, description in signature.members.items():
        for index in product(*map(range, description.dimensions)):
            name = "_".join(map(str, (f"{prefix}{member}", *index)))
            if description.is_signature:
                yield from _bundle(description.signature, name, member)
            elif member == "irq":
                yield _signal(name, "interrupt", "INTERRUPT", True, {"SENSITIVITY": "LEVEL_HIGH"})


def _bundle(signature, name, member):
    """The bus of a signature; the buses inside, if it is none itself."""
    is_slave = isinstance(signature, wiring.FlippedSignature)
    plain = signature.flip() if is_slave else signature
    kinds = {Axi4Signature: "AXI4", Axi4LiteSignature: "AXI4-Lite", stream.Signature: "AXI4Stream"}
    if type(plain) not in kinds:
        yield from _within(signature, f"{name}_")
        return
    logical = {signal: _STREAM.get(signal, signal.upper()) for signal in plain.members}
    ports = {f"{name}_{signal}": word for signal, word in logical.items()}
    yield BusEntry(name, (*_ARM, kinds[type(plain)], "r0p0_0"), not is_slave, ports, member)
