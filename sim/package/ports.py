"""The ports of a top as an integrator sees them: Verilog names, widths, meanings, and what lies where in a payload."""

from dataclasses import dataclass

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from tilewright.hw.bus.axi4 import Axi4Signature
from tilewright.hw.bus.axi4_lite import Axi4LiteSignature

from .meanings import field_docs, port_docs

__all__ = ["Bits", "PortEntry", "clock_and_reset", "interface_docs", "ports_of"]

#: Bundles whose signals need no sentence on the whole bundle: everybody has met them.
_STANDARD = (Axi4Signature, Axi4LiteSignature)


@dataclass(frozen=True)
class Bits:
    """A field of a payload.

    Attributes
    ----------
    name : str
    lsb, width : int
        Lowest bit and number of bits, of element 0 of an array.
    count : int
        Elements, each ``width`` bits above the one before; 0 if it is no array.
    meaning : str
    """

    name: str
    lsb: int
    width: int
    count: int
    meaning: str

    @property
    def total(self):
        """Bits of all elements."""
        return self.width * (self.count or 1)


@dataclass(frozen=True)
class PortEntry:
    """One port of a module.

    Attributes
    ----------
    name : str
        As in Verilog.
    bundle : str
        First part of its name: the member of the component that it belongs to.
    is_input : bool
    width : int
    meaning : str
    fields : tuple of Bits
        What it is made of, from bit 0 on without a gap; empty if it is a number, or a word of one of several formats.
    """

    name: str
    bundle: str
    is_input: bool
    width: int
    meaning: str
    fields: tuple[Bits, ...] = ()


def clock_and_reset():
    """The two ports that every module has besides those of its component."""
    return [
        PortEntry("clk", "clk", True, 1, "Clock; everything happens at its rising edge."),
        PortEntry("rst", "rst", True, 1, "Reset, synchronous; one cycle is enough."),
    ]


def ports_of(component):
    """Every port of ``component``, clock and reset first, as a list of PortEntry."""
    ports = clock_and_reset()
    for path, member, _ in component.signature.flatten(component):
        shape = member.shape
        ports.append(
            PortEntry(
                "_".join(map(str, path)), str(path[0]), member.flow == In, Shape.cast(shape).width,
                _meaning(component, path), _fields(shape),
            )
        )  # fmt: skip
    return ports


def interface_docs(component):
    """What each interface is, by the ``bundle`` of its ports, in their order."""
    docs = {port.bundle: port.meaning for port in clock_and_reset()}
    return docs | {name: port_docs(_declared(component, name)).get(name, "") for name in component.signature.members}


def _declared(component, name):
    """The class whose docstring says what a member of ``component`` is."""
    if name in port_docs(type(component)):
        return type(component)
    return type(next(iter(getattr(component, "cores", [component]))))  # of a cluster: arrays of what its cores have


def _meaning(component, path):
    """What the docstrings say of the port at ``path``, from the innermost bundle on."""
    texts, declared, signature = [], _declared(component, path[0]), component.signature
    for depth, name in enumerate(path):
        if isinstance(name, int):  # an element of an array of ports
            continue
        if isinstance(signature, stream.Signature):
            word = "_".join(map(str, path[:depth]))
            return {
                "payload": texts[-1],
                "valid": f"`{word}_payload` is offered.",
                "ready": f"`{word}_payload` is taken if it is offered.",
            }[name]
        texts.append(port_docs(declared).get(name, ""))
        member = signature.members[name]
        if member.is_signature:
            signature = member.signature
            signature = signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature
            declared = type(signature)
            if isinstance(signature, _STANDARD):
                texts = []
    return " ".join(filter(None, texts[-2:])) if texts[-1] else ""


def _fields(shape):
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        return (Bits("lane", 0, width, shape.length, "One after the other, lane 0 first."),)
    if not isinstance(shape, data.StructLayout):
        return ()
    docs = field_docs(type(shape))
    fields = []
    for name, field in shape:
        element, count = field.shape, 0
        if isinstance(element, data.ArrayLayout):
            element, count = element.elem_shape, element.length
        fields.append(Bits(name, field.offset, Shape.cast(element).width, count, docs.get(name, "")))
    return tuple(fields)
