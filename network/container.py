"""A compiled network as one file that the C library runs (docs/in_your_soc.md, "The model container").

It has the weights, the program and the descriptors, the places of all inputs and outputs, what must be added to
addresses where the memory does not begin at 0, and the sizes of the core that the program was compiled for.
"""

import struct

import numpy as np

from tilewright.golden import check_word
from tilewright.spec import BLOCK, COMMAND, DESCRIPTOR, FORMATS, TENSOR_OPCODES, Element, Opcode, Space
from tilewright.spec.arithmetic import UNITS
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.conv import built_with as conv_built_with
from tilewright.spec.core import JOB_WORDS, PROGRAM_WORDS, WORD_BYTES, Kind
from tilewright.spec.pe import MM_FAMILIES, PE_REGISTERS
from tilewright.spec.tmau_registers import FEATURES

from .graph import ModelError, node_error

__all__ = ["MAGIC", "VERSION", "c_array", "checksum", "container", "relocations"]

MAGIC, VERSION = b"TWMD", 1
#: Most dimensions of an input or output.
_RANK = 6
#: Zeros of the memory that are worth a new segment, in bytes.
_GAP = 256
_HEADER_WORDS, _CHECKED_FROM = 32, 4
_ELEMENTS = {"uint8": Element.U8, "int8": Element.S8, "int32": Element.S32}
_KIND = PROGRAM_WORDS[Kind.END]["kind"]


def container(compiled):
    """The bytes of the container of a :class:`Compiled`.

    Raises
    ------
    ModelError
        If the host computes more than a quantisation at the beginning and a dequantisation at the end, if an input or
        output has more than six dimensions, or if there are several cores.
    """
    if compiled.plan.machine.cores > 1:
        raise ModelError(f"a container holds the program of one core, not of {compiled.plan.machine.cores}")
    inputs = [_input(compiled, name) for name in compiled.graph.inputs]
    outputs = [_output(compiled, name) for name in compiled.graph.outputs]
    segments, moved = _segments(compiled.image), relocations(compiled)
    machine, program = compiled.plan.machine, (compiled.plan.start, len(compiled.words))
    body = [_words(*program, len(inputs), len(outputs), len(segments), len(moved))]
    body.append(_words(_features(compiled), machine.smem_bytes, *_registers(machine)))
    head = b"".join(body).ljust(4 * (_HEADER_WORDS - _CHECKED_FROM - 1), b"\0")
    head = _words(len(compiled.image)) + head
    tail = [*inputs, *outputs, *(_words(*segment) for segment in segments), _words(*moved)]
    tail += [compiled.image[first : first + count].tobytes() for first, count in segments]
    checked = head + b"".join(tail)
    return MAGIC + _words(VERSION, 4 * _CHECKED_FROM + len(checked), checksum(checked)) + checked


def checksum(data):
    """Two sums over the 32-bit words: of the words, and of the sums so far; the second rotated into the first."""
    words = np.frombuffer(data, "<u4").astype(np.uint64)
    first = int(words.sum()) & 0xFFFFFFFF
    second = int((np.cumsum(words) & np.uint64(0xFFFFFFFF)).sum()) & 0xFFFFFFFF
    return first ^ (second << 16 | second >> 16) & 0xFFFFFFFF


def c_array(data, name):
    """A file in C that defines the container ``data`` as ``name``, and its size as ``name_size``."""
    numbers = [f"0x{word:08x}," for word in np.frombuffer(data, "<u4")]
    rows = "\n".join("    " + " ".join(numbers[first : first + 8]) for first in range(0, len(numbers), 8))
    return (
        "/* A model container of Tilewright, as words of 32 bits. */\n#include <stddef.h>\n#include <stdint.h>\n\n"
        f"extern const uint32_t {name}[];\nextern const size_t {name}_size;\n\n"
        f"const uint32_t {name}[] = {{\n{rows}\n}};\nconst size_t {name}_size = sizeof {name};\n"
    )


def _words(*numbers):
    return struct.pack(f"<{len(numbers)}I", *(number & 0xFFFFFFFF for number in numbers))


def _input(compiled, name):
    """The record of an input: of the bytes that are written, quantised by the processor if the model's are floats."""
    graph = compiled.graph
    if graph.head:
        node = graph.head[0]
        raise node_error(
            node.name, node.operator, "the host computes it before the engines: a container cannot hold it"
        )
    if name in compiled.places:
        return _tensor(compiled, name, name, 0.0, 0)
    makers = [node for node in graph.nodes if node.kind == "Quantize" and node.inputs[0] == name]
    if len(makers) != 1:
        raise ModelError(f"input {name!r} must be quantised once for a container, not {len(makers)} times")
    return _tensor(compiled, name, makers[0].output, makers[0].attributes.scale, makers[0].attributes.zero)


def _output(compiled, name):
    """The record of an output, which the processor may dequantise."""
    makers = {node.output: node for node in compiled.graph.tail}
    node = makers.get(name)
    if node is None:
        return _tensor(compiled, name, name, 0.0, 0)
    if node.kind != "Dequantize" or node.inputs[0] in makers:
        raise node_error(node.name, node.operator, "the host computes it after the engines: a container cannot hold it")
    source = node.inputs[0]
    scale, zero = _line(node, compiled.graph.tensors[source].dtype)
    return _tensor(compiled, name, source, scale, zero)


def _line(node, dtype):
    """Scale and zero point of a table of floats."""
    table = np.asarray(node.attributes.table, np.float32)
    values = np.arange(256).astype(np.uint8).view(dtype).astype(np.int64)
    zeros = values[table == 0]
    if len(zeros) == 1:
        other = int(zeros[0]) + (1 if int(zeros[0]) < values.max() else -1)
        scale = np.float32(table[other & 0xFF] * np.sign(other - zeros[0]))
        if (table == ((values - zeros[0]).astype(np.float32) * scale)).all():
            return scale, int(zeros[0])
    raise node_error(node.name, node.operator, "its output is a function of bytes: a container holds a scale for it")


def _tensor(compiled, name, source, scale, zero):
    """Offset, element, rank; sizes; strides in bytes; scale as binary32, zero point."""
    place = compiled.places[source]
    if len(place.shape) > _RANK:
        raise ModelError(
            f"tensor {name!r} must have at most {_RANK} dimensions for a container, not {len(place.shape)}"
        )
    if place.dtype not in _ELEMENTS:
        raise ModelError(f"tensor {name!r} must be of {', '.join(_ELEMENTS)} for a container, not {place.dtype}")
    missing = _RANK - len(place.shape)
    numbers = [compiled.plan.tensors[place.name], _ELEMENTS[place.dtype], len(place.shape)]
    numbers += [*place.shape, *(1,) * missing, *place.strides, *(0,) * missing]
    return _words(*numbers, int(np.float32(scale).view(np.uint32)), zero, 0, 0, 0)


def _segments(image):
    """First byte and bytes of each stretch of an image that is not all zeros, in whole words."""
    used = np.flatnonzero(image)
    if not len(used):
        return []
    breaks = np.flatnonzero(np.diff(used) > _GAP)
    firsts, lasts = used[np.concatenate([[0], breaks + 1])], used[np.concatenate([breaks, [-1]])]
    return [
        (int(first) & ~3, (int(last) | 3) + 1 - (int(first) & ~3)) for first, last in zip(firsts, lasts, strict=True)
    ]


def relocations(compiled):
    """Offsets of the addresses of global memory in the image, 64 bits each."""
    found = [address + DESCRIPTOR["address"].lsb // 8 for address in compiled.plan.maps.values()]
    index = 0
    while index < len(compiled.words):
        word, at = compiled.words[index], compiled.plan.start + WORD_BYTES * index
        kind = Kind(word >> _KIND.lsb)
        if kind == Kind.PE:
            found.append(at + PROGRAM_WORDS[kind]["address"].lsb // 8)
        elif kind == Kind.TMAU:
            found += [at + field.lsb // 8 for field in _addresses(word)]
        index += 1 + (JOB_WORDS if kind == Kind.CONV else 0)
    return found


def _addresses(command):
    """The fields of a command that are global addresses."""
    opcode = Opcode(command & COMMAND["opcode"].mask)
    if opcode in TENSOR_OPCODES:
        return [COMMAND["descriptor"]]
    if opcode != Opcode.COPY_BLOCK:
        return []
    fields = FORMATS[opcode].unpack(command & (1 << _KIND.lsb) - 1)
    return [BLOCK[side] for side in ("source", "destination") if fields[f"{side}_space"] == Space.GLOBAL]


def _features(compiled):
    """Bits of register ``features`` that the descriptors and the stores need."""
    needed = {"stores"}
    for address in compiled.plan.maps.values():
        word = int.from_bytes(compiled.image[address : address + DESCRIPTOR.bytes].tobytes(), "little")
        needed |= {name for name in FEATURES if check_word(word, tuple(each for each in FEATURES if each != name))}
    return sum(1 << bit for bit, name in enumerate(FEATURES) if name in needed)


def _registers(machine):
    """Mask and value of the registers that show the sizes which programs depend on: three of conv, five of pe."""
    conv, pe = conv_built_with(machine.conv), {}
    del conv["params1"]["queue_depth"]
    if machine.pe:
        sizes, units = machine.pe, machine.pe.units
        types = sum(1 << bit for bit, family in enumerate(MM_FAMILIES) if family in sizes.types)
        pe = {
            "params0": {"threads": sizes.threads, "regs": sizes.regs},
            "params1": {"factor_regs": sizes.factor_regs, "uniform_regs": sizes.uniform_regs, "types": types},
            "params2": {"segments": sizes.segments, "pages": sizes.pages},
            "params4": {
                "kernel_words": sizes.kernel_words if units else 0,
                "lookup_words": sizes.lookup_words if "lookup" in units else 0,
                "units": sum(1 << bit for bit, unit in enumerate(UNITS) if unit in units),
            },
        }  # fmt: skip
    numbers = []
    for registers, names, fields in (
        (CONV_REGISTERS, ("params0", "params1", "params2"), conv),
        (PE_REGISTERS, ("params0", "params1", "params2", "params3", "params4"), pe),
    ):
        formats = {register.name: register.format for register in registers}
        for name in names:
            given = fields.get(name, {})
            numbers.append(sum(formats[name][field].mask << formats[name][field].lsb for field in given))
            numbers.append(formats[name].pack(**given))
    return numbers
