"""What a top shows: its ports with their meanings, and the address map of its AXI4-Lite port.

Meanings are read from declarations: members of enumerations, fields of layouts, ports.
"""

import inspect
import re
import sys
from dataclasses import dataclass
from functools import cache

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from tilewright.hw.bus.axi4 import Axi4Signature
from tilewright.hw.bus.axi4_lite import Axi4LiteSignature
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv import control as conv_control
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe import control as pe_control
from tilewright.hw.tmau import control as tmau_control
from tilewright.spec import core as core_registers
from tilewright.spec.cluster import CLUSTER_REGISTERS, L2_REGISTERS
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.pe import PE_REGISTERS
from tilewright.spec.registers import Register
from tilewright.spec.tmau_registers import (
    BARRIER_WINDOW_REGISTERS,
    COMMAND_WINDOW_REGISTERS,
    TMAU_REGISTERS,
    processor_registers,
)

__all__ = ["Bits", "PortEntry", "RegionEntry", "attribute_docs", "clock_and_reset", "field_docs", "interface_docs",
           "maps_of", "member_docs", "port_docs", "ports_of", "regions_of", "reset_values"]  # fmt: skip


def member_docs(enumeration):
    """The ``#:`` comments of the members of an enumeration, by name; members without a comment are left out."""
    return dict(re.findall(r"^    (\w+) = .*?#: (.*)$", inspect.getsource(enumeration), re.MULTILINE))


def attribute_docs(cls):
    """Name, type and meaning of each entry in the ``Attributes`` section of a docstring, as a list of tuples."""
    section = inspect.getdoc(cls).split("Attributes\n----------\n")[1]
    entries = re.findall(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n?)+)", section + "\n", re.MULTILINE)
    return [(name, kind, " ".join(text.split())) for names, kind, text in entries for name in names.split(", ")]


@cache
def field_docs(layout):
    """The comments of the fields of a layout, by name; fields without a comment are left out.

    Parameters
    ----------
    layout : type
        A class of layouts with one field on each line of its source.
    """
    source = inspect.getsource(layout)
    return {name: _sentence(text) for name, text in re.findall(r'^ +"(\w+)": .*?  # (.*)$', source, re.MULTILINE)}


@cache
def port_docs(declared):
    """The comments above or after the members that a component, a signature or a function makes, by name.

    Members that are made elsewhere, by ``…_members(…)`` or as ``OtherSignature(…).members``, are looked up there.
    """
    source, module = inspect.getsource(declared), vars(sys.modules[declared.__module__])
    docs, comment = {}, []
    for name in re.findall(r"\b(\w+_members|\w+Signature(?=\([\w.]*\)\.members))\(", source):
        if module.get(name) not in (None, declared):
            docs |= port_docs(module[name])
    for line in source.splitlines():
        if above := re.match(r"^ +# (.*)$", line):
            comment.append(above[1])
            continue
        names = re.findall(r'"(?:{name})?(\w+)"(?:: |\] = )(?:(?:In|Out)\(|\w+,)|^    (\w+): (?:In|Out)\(', line)
        names = ["".join(groups) for groups in names]
        behind = re.search(r"  # (.*)$", line)
        if text := behind[1] if behind else " ".join(comment):
            docs |= dict.fromkeys(names, _sentence(text))
        comment = []
    return docs


def _sentence(text):
    """``text`` as a sentence."""
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else f"{text}."


#: Standard bundles, whose signals are described without a sentence on the whole bundle.
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
        Elements, each ``width`` bits above the previous one; 0 if it is not an array.
    meaning : str
    """

    name: str
    lsb: int
    width: int
    count: int
    meaning: str

    @property
    def total(self):
        """The number of bits of all elements."""
        return self.width * (self.count or 1)


@dataclass(frozen=True)
class PortEntry:
    """One port of a module.

    Attributes
    ----------
    name : str
        Name in Verilog.
    bundle : str
        First part of its name: the member of the component that it belongs to.
    is_input : bool
    width : int
    meaning : str
    fields : tuple of Bits
        Its parts, from bit 0 on without a gap; empty if it is a number, or a word of one of several formats.
    """

    name: str
    bundle: str
    is_input: bool
    width: int
    meaning: str
    fields: tuple[Bits, ...] = ()


def clock_and_reset():
    """The two ports that every module has in addition to the ports of its component."""
    return [
        PortEntry("clk", "clk", True, 1, "Clock; its rising edge is active."),
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
    """The meaning of each interface, by the ``bundle`` of its ports, in their order."""
    docs = {port.bundle: port.meaning for port in clock_and_reset()}
    return docs | {name: port_docs(_declared(component, name)).get(name, "") for name in component.signature.members}


def _declared(component, name):
    """The class whose docstring describes a member of ``component``."""
    if name in port_docs(type(component)):
        return type(component)
    return type(next(iter(getattr(component, "cores", [component]))))  # in a cluster, arrays of its cores' members


def _meaning(component, path):
    """The meaning of the port at ``path``, from docstrings, beginning with the innermost bundle."""
    texts, declared, signature = [], _declared(component, path[0]), component.signature
    for depth, name in enumerate(path):
        if isinstance(name, int):  # an element of an array of ports
            continue
        if isinstance(signature, stream.Signature):
            word = "_".join(map(str, path[:depth]))
            return {
                "payload": texts[-1],
                "valid": f"`{word}_payload` is valid.",
                "ready": f"`{word}_payload` is accepted if it is valid.",
            }[name]
        docs = port_docs(declared)
        if declared in _STANDARD:  # of address channels the names begin with the channel
            texts.append(docs.get(name) or docs.get(name[2:]) or f"{name.upper()}, as the specification of AXI has it.")
        else:
            texts.append(docs.get(name, ""))
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
        return (Bits("lane", 0, width, shape.length, "All lanes, lane 0 in the lowest bits."),)
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


#: Registers by region, with their meaning, and the values of registers that show parameters of the hardware.
_REGISTERS = {
    "tmau": ("Registers of the TMAU.", TMAU_REGISTERS, tmau_control.built_with),
    "pe": ("Registers of the processing engine.", PE_REGISTERS, pe_control.built_with),
    "conv": ("Registers of the convolution engine.", CONV_REGISTERS, conv_control.built_with),
    "program": ("Registers of the command processor.", core_registers.PROGRAM_REGISTERS, core_registers.built_with),
    "smem": ("Shared memory, by 32-bit words.", (), lambda params: {}),
    "commands": ("Command window.", COMMAND_WINDOW_REGISTERS, lambda params: {}),
    "barriers": ("Barrier window.", BARRIER_WINDOW_REGISTERS, lambda params: {}),
}


@dataclass(frozen=True)
class RegionEntry:
    """A region of the address space.

    Attributes
    ----------
    name : str
    base, size : int
        First byte address, and bytes.
    meaning : str
    registers : tuple of (Register, int)
        With the value of each after reset; empty if the region is memory.
    """

    name: str
    base: int
    size: int
    meaning: str
    registers: tuple[tuple[Register, int], ...]


def reset_values(name, params):
    """Values of the registers of a region after reset, by name; ``params`` belong to the engine of the region.

    In a cluster the values are those of core 0.
    """
    shown = _REGISTERS[name][2](params)
    if _in_cluster(name, params):
        shown["core"] = {"cores": params.cores}
    if name == "tmau":
        shown["processors"] = {"count": params.processors}
    return {register.name: register.format.pack(**shown.get(register.name, {})) or register.reset
            for register in _registers(name, params)}  # fmt: skip


def _in_cluster(name, params):
    return name == "tmau" and params.cores > 1


def _registers(name, params):
    registers = _REGISTERS[name][1] + (CLUSTER_REGISTERS if _in_cluster(name, params) else ())
    return registers + (processor_registers(params.processors, params.has("windows")) if name == "tmau" else ())


def regions_of(component):
    """The regions of ``s_axil`` of a top, by address, as a list of RegionEntry; in a cluster each core has them."""
    regions, params = [], component.params
    params = params.core if isinstance(params, ClusterParams) else params
    for name, region in component.regions.items():
        # The command processor shows parameters of the whole core.
        of_engine = isinstance(params, CoreParams) and name != "program"
        built = getattr(params, name, params) if of_engine else params
        resets = reset_values(name, built)
        read = tuple((register, resets[register.name]) for register in _registers(name, built))
        regions.append(RegionEntry(name, region.base, region.size, _REGISTERS[name][0], read))
    return regions


def maps_of(component):
    """Regions by name of their port: ``s_axil``, and in a cluster with a cache ``l2_axil``."""
    maps = {"s_axil": regions_of(component)}
    cache = getattr(component.params, "l2", None)
    if cache:
        shown = {"params0": {"bytes": cache.bytes}, "params1": {"ways": cache.ways, "misses": cache.misses}}
        read = tuple(
            (register, register.format.pack(**shown.get(register.name, {})) or register.reset)
            for register in L2_REGISTERS
        )
        size = 1 << component.l2_axil.signature.addr_width
        maps["l2_axil"] = [RegionEntry("l2", 0, size, "Registers of the second-level cache.", read)]
    return maps
