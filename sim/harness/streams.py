"""The ports of a design under names of their own, for waveforms: each field of each payload."""

from amaranth.hdl import Elaboratable, Instance, Module, Value
from amaranth.lib import data

from tilewright.hw.lib.layouts import packed_layout
from tilewright.spec import COMMAND, FORMATS
from tilewright.spec.conv import JOB
from tilewright.spec.pe import INSTRUCTIONS, PAGE_ENTRY, SEGMENT

__all__ = ["Streams"]

#: Formats of payloads that are words, by the port: the end of their names, after the port's name, and their bits.
_WORDS = {
    # Commands on tensors are the payload's own fields.
    "commands": ("payload", {fmt.name: fmt for fmt in FORMATS.values() if fmt is not COMMAND}),
    "instructions": ("payload", {operation.name.lower(): fmt for operation, fmt in INSTRUCTIONS.items()}),
    "jobs": ("payload", {JOB.name: JOB}),
    "segments": ("payload_word", {SEGMENT.name: SEGMENT}),
    "pages": ("payload_word", {PAGE_ENTRY.name: PAGE_ENTRY}),
}
#: Names of fields that are words of Verilog: here they end with an underscore.
_RESERVED = {"output", "table", "type"}
#: Arrays of more elements are one signal.
_MOST_ELEMENTS = 16


class Streams(Elaboratable):
    """A module for each port of a component, and for each format of the words that it takes, with an input a field.

    Yosys calls a port after what it is connected to, and a payload is one vector there. These modules do nothing: their
    inputs are names. They are written in Verilog, for what nothing reads Yosys would remove.

    Parameters
    ----------
    component : Component

    Attributes
    ----------
    groups : dict of str to dict of str to Value
        By the name of the instance its inputs.
    """

    def __init__(self, component):
        self.groups = {}
        for name, member in component.signature.members.items():
            ports = getattr(component, name)
            several = enumerate(ports) if member.dimensions else (("", ports),)
            for number, port in several:
                self._add(name, f"{name}{number}", port, member)

    def _add(self, name, group, port, member):
        if not member.is_signature:
            fields = dict(_fields("value", port))
            # Ports of one bit, as interrupts, have no module of their own.
            own = group if len(fields) > 1 else "ports"
            renamed = {field.removeprefix("value_").replace("value", group): value for field, value in fields.items()}
            self.groups.setdefault(own, {}).update(renamed)
            return
        fields = {}
        for path, _, value in member.signature.flatten(port):
            fields |= _fields("_".join(map(str, path)), value)
        whole, formats = _WORDS.get(name, ("", {}))
        words = {
            f"{group}_{label}": data.View(packed_layout(fmt), _word(port, whole)) for label, fmt in formats.items()
        }
        handshake = {field: value for field, value in fields.items() if field in ("valid", "ready")}
        self.groups[group] = {_bare(field): value for field, value in fields.items()}
        for label, view in words.items():
            self.groups[label] = handshake | dict(_fields("", view))

    def verilog(self):
        """The text of the modules."""
        modules = []
        for group, fields in self.groups.items():
            inputs = ",\n".join(f"  input [{len(value) - 1}:0] {name}" for name, value in fields.items())
            modules.append(f"module {_module(group)} (\n{inputs}\n);\nendmodule\n")
        return "\n".join(modules)

    def elaborate(self, platform):
        m = Module()
        for group, fields in self.groups.items():
            inputs = {f"i_{name}": value for name, value in fields.items()}
            m.submodules[group] = Instance(_module(group), a_keep=1, **inputs)
        return m


def _module(group):
    return f"streams_{group}"


def _bare(field):
    """The name of a member of a stream; of its payload that of the part, unless it is a number."""
    bare = field.removeprefix("payload_")
    return field if bare.isdigit() else bare


def _word(port, path):
    value = port.payload
    return Value.cast(value.word if path == "payload_word" else value)


def _fields(name, value):
    """Yields the parts of a value, each with its name after ``name``."""
    if not isinstance(value, data.View):
        yield name, Value.cast(value)
        return
    layout = value.shape()
    keys = [key for key, _ in layout]
    if isinstance(layout, data.ArrayLayout) and len(keys) > _MOST_ELEMENTS:
        yield name, Value.cast(value)
        return
    for key in keys:
        # What lies together as an array is there element by element too.
        if f"{key}0" not in keys:
            part = f"{key}_" if key in _RESERVED else key
            yield from _fields(f"{name}_{part}" if name else part, value[key])
