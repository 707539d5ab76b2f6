"""An IP-XACT component (IEEE 1685-2014) for one top: ports, bus interfaces, registers, parameters, files.

Ports are those of ``ports.py``, bus interfaces those of ``buses.py``, registers and addresses those of ``regions.py``.
"""

import dataclasses
from xml.etree import ElementTree

from tilewright.golden.spec.registers import Access

from .buses import buses_of
from .meanings import member_docs
from .ports import ports_of
from .regions import maps_of

__all__ = ["component_file"]

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
        Of its module and its files.
    version : str
        Of Tilewright.
    description : str
        What it says besides of the component.
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
            else:  # ports of an array lead to the like
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
    # What hardware shows or sets changes by itself.
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
    """The parameters that the Verilog was made with; they cannot be changed in it."""
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if value is None:  # what is not built has no parameters
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
