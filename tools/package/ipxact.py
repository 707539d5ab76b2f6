"""The IP-XACT file of a top: its bus interfaces (AXI, streams, clock, reset, interrupts), registers and parameters."""

import dataclasses
from dataclasses import dataclass
from itertools import product
from xml.etree import ElementTree

from amaranth.lib import stream, wiring

from tilewright.hw.bus.axi4 import Axi4Signature
from tilewright.hw.bus.axi4_lite import Axi4LiteSignature
from tilewright.spec.registers import Access

from .ports import maps_of, member_docs, ports_of

__all__ = ["BusEntry", "buses_of", "component_file"]

_ARM = ("amba.com", "AMBA4")
#: Vivado's definitions, which other tools accept: there is no standard for single signals.
_SIGNAL = ("xilinx.com", "signal")
_STREAM = {"valid": "TVALID", "ready": "TREADY", "payload": "TDATA"}


@dataclass(frozen=True)
class BusEntry:
    """A bus interface.

    Attributes
    ----------
    name : str
        Name of the interface, with which the names of its ports begin.
    definition : tuple of str
        Vendor, library, name and version of the bus definition.
    is_master : bool
        Whether it sends, or makes requests.
    ports : dict
        Logical names by name of the port.
    member : str
        The member of the component that it belongs to.
    parameters : dict
        Strings that the definition requires, by name.
    """

    name: str
    definition: tuple[str, str, str, str]
    is_master: bool
    ports: dict[str, str]
    member: str
    parameters: dict[str, str] = dataclasses.field(default_factory=dict)


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
    """The bus of a signature, or the buses inside it."""
    is_slave = isinstance(signature, wiring.FlippedSignature)
    plain = signature.flip() if is_slave else signature
    kinds = {Axi4Signature: "AXI4", Axi4LiteSignature: "AXI4-Lite", stream.Signature: "AXI4Stream"}
    if type(plain) not in kinds:
        yield from _within(signature, f"{name}_")
        return
    logical = {signal: _STREAM.get(signal, signal.upper()) for signal in plain.members}
    ports = {f"{name}_{signal}": word for signal, word in logical.items()}
    yield BusEntry(name, (*_ARM, kinds[type(plain)], "r0p0_0"), not is_slave, ports, member)


_NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_LOCATION = f"{_NAMESPACE} http://www.accellera.org/XMLSchema/IPXACT/1685-2014/index.xsd"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_ACCESS = {
    Access.CONSTANT: "read-only",
    Access.RO: "read-only",
    Access.RW: "read-write",
    Access.W1C: "read-write",
    Access.WO: "write-only",
    Access.WRITE: "write-only",
}
_MODIFIED = {Access.W1C: "oneToClear"}


def _add(parent, tag, text=None, **attributes):
    """A new child of ``parent``."""
    child = ElementTree.SubElement(parent, f"{{{_NAMESPACE}}}{tag}", attributes)
    child.text = None if text is None else str(text)
    return child


def _named(parent, tag, name, meaning=None):
    """A child with a name and, if there is one, a description."""
    child = _add(parent, tag)
    _add(child, "name", name)
    if meaning:
        _add(child, "description", meaning.replace("``", "").replace("`", ""))
    return child


def _vlnv(parent, vendor, library, name, version):
    for tag, text in (("vendor", vendor), ("library", library), ("name", name), ("version", version)):
        _add(parent, tag, text)


def component_file(component, name, version, description=""):
    """Text of ``name.xml``.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        The top.
    name : str
        Name of its module and its files.
    version : str
        Version of Tilewright.
    description : str
        Description of the component.
    """
    ElementTree.register_namespace("ipxact", _NAMESPACE)
    ElementTree.register_namespace("xsi", _INSTANCE)
    root = ElementTree.Element(f"{{{_NAMESPACE}}}component", {f"{{{_INSTANCE}}}schemaLocation": _LOCATION})
    _vlnv(root, "tilewright", "engines", name, version)
    _bus_interfaces(_add(root, "busInterfaces"), component)
    if "m_axi" in component.signature.members:
        spaces = _add(root, "addressSpaces")
        space = _named(spaces, "addressSpace", "global", "Global memory.")
        _add(space, "range", hex(1 << component.m_axi.signature.addr_width).replace("0x", "'h"))
        _add(space, "width", component.m_axi.signature.data_width)
    maps = _add(root, "memoryMaps")
    for port, regions in maps_of(component).items():
        _memory_map(maps, port, regions)
    _model(_add(root, "model"), component, name)
    files = _named(_add(root, "fileSets"), "fileSet", "rtl")
    for file, kind in ((f"{name}.v", "verilogSource"), (f"{name}.vlt", "user")):
        entry = _add(files, "file")
        _add(entry, "name", file)
        _add(entry, "fileType", kind, **({"user": "vlt"} if kind == "user" else {}))
    _add(root, "description", f"{type(component).__doc__.splitlines()[0]} {description}".rstrip())
    _parameters(_add(root, "parameters"), component.params)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _bus_interfaces(parent, component):
    for bus in buses_of(component):
        interface = _named(parent, "busInterface", bus.name)
        vendor, library, name, version = bus.definition
        _add(interface, "busType", vendor=vendor, library=library, name=name, version=version)
        abstraction = _add(_add(interface, "abstractionTypes"), "abstractionType")
        _add(abstraction, "abstractionRef", vendor=vendor, library=library, name=f"{name}_rtl", version=version)
        maps = _add(abstraction, "portMaps")
        for physical, logical in bus.ports.items():
            _port_map(maps, physical, logical)
        if name.startswith("AXI4"):
            _port_map(maps, "clk", "ACLK")
            _port_map(maps, "rst", "ARESETn", invert="true")
        role = _add(interface, "master" if bus.is_master else "slave")
        if name in ("AXI4", "AXI4-Lite"):
            if bus.is_master:
                _add(role, "addressSpaceRef", addressSpaceRef="global")
            else:  # ports of an array have the same type
                _add(role, "memoryMapRef", memoryMapRef=bus.member)
        if bus.parameters:
            parameters = _add(interface, "parameters")
            for key, value in bus.parameters.items():
                _add_parameter(parameters, key, f'"{value}"', "string", f"{bus.name}_{key}")


def _port_map(parent, physical, logical, **attributes):
    entry = _add(parent, "portMap", **attributes)
    _add(_add(entry, "logicalPort"), "name", logical)
    _add(_add(entry, "physicalPort"), "name", physical)


def _memory_map(parent, port, regions):
    memory = _named(parent, "memoryMap", port)
    for region in regions:
        block = _named(memory, "addressBlock", region.name, region.meaning)
        _add(block, "baseAddress", f"'h{region.base:x}")
        _add(block, "range", f"'h{region.size:x}")
        _add(block, "width", 32)
        _add(block, "usage", "register" if region.registers else "memory")
        if not region.registers:
            _add(block, "access", "read-write")
        for register, reset in region.registers:
            _register(block, register, reset)
    _add(memory, "addressUnitBits", 8)


def _register(parent, register, reset):
    entry = _named(parent, "register", register.name, register.doc)
    _add(entry, "addressOffset", f"'h{register.offset:x}")
    _add(entry, "size", 32)
    # Fields that hardware shows or sets are volatile.
    _add(entry, "volatile", str(register.access in (Access.RO, Access.W1C)).lower())
    _add(entry, "access", _ACCESS[register.access])
    for field in register.fields:
        bits = _named(entry, "field", field.name, field.doc)
        _add(bits, "bitOffset", field.lsb)
        value = _add(_add(bits, "resets"), "reset")
        _add(value, "value", f"'h{reset >> field.lsb & (1 << field.width) - 1:x}")
        _add(bits, "bitWidth", field.width)
        _add(bits, "access", _ACCESS[register.access])
        if field.enum:
            values = _add(bits, "enumeratedValues")
            docs = member_docs(field.enum)
            for member in field.enum:
                _add(_named(values, "enumeratedValue", member.name, docs.get(member.name)), "value", int(member))
        if register.access in _MODIFIED:
            _add(bits, "modifiedWriteValue", _MODIFIED[register.access])


def _model(parent, component, name):
    view = _named(_add(parent, "views"), "view", "rtl")
    _add(view, "envIdentifier", "verilogSource::")
    _add(view, "componentInstantiationRef", "verilog")
    instance = _named(_add(parent, "instantiations"), "componentInstantiation", "verilog")
    _add(instance, "language", "verilog")
    _add(instance, "moduleName", name)
    _add(_add(instance, "fileSetRef"), "localName", "rtl")
    ports = _add(parent, "ports")
    for port in ports_of(component):
        wire = _add(_named(ports, "port", port.name, port.meaning), "wire")
        _add(wire, "direction", "in" if port.is_input else "out")
        vector = _add(_add(wire, "vectors"), "vector")
        _add(vector, "left", port.width - 1)
        _add(vector, "right", 0)


def _parameters(parent, params, prefix=""):
    """The parameters with which the Verilog was made; they are constants in it."""
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if value is None:  # blocks that are not built have no parameters
            continue
        if dataclasses.is_dataclass(value):
            _parameters(parent, value, f"{prefix}{field.name}_")
            continue
        names = isinstance(value, tuple)
        kind, text = ("string", f'"{" ".join(value)}"') if names else ("int", int(value))
        _add_parameter(parent, f"{prefix}{field.name}", text, kind, f"{prefix}{field.name}")


def _add_parameter(parent, name, value, kind, identifier):
    entry = _add(parent, "parameter", type=kind, resolve="immediate", parameterId=identifier)
    _add(entry, "name", name)
    _add(entry, "value", value)
