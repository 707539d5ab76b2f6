"""The text of TMAU commands, read: one line, one 512-bit command.

::

    copy_tensor.mode.dim.dst,src{.op} descriptor (coordinates) {smem {barrier}} {(offsets)}
    prefetch_tensor.mode.dim descriptor (coordinates) {(offsets)}
    copy_block.dst,src{.op.type} dst_address {barrier} src_address blocks
    prefetch_block address blocks
    commit | wait{.read} groups | wait_all | invalidate descriptor | invalidate_all
    replace descriptor field{[index]} value
    lanes.type.dst_layout,src_layout dst_address{:lane} {barrier} src_address{:lane} (W,H,C,N) lanes eu_bytes

``mode`` is tiles or im2col, ``dim`` 1d to 5d, ``dst`` and ``src`` shared or global, and ``src`` of a store also fill,
which has no address in shared memory. ``op`` is a reduction; blocks are of 16 bytes. ``tag=n`` may end every line, and
``//`` begins a comment. ``word n`` is a command as it is. Numbers are decimal, or hexadecimal with 0x.
"""

from tilewright.golden import command_word
from tilewright.golden.spec import (
    BLOCK,
    COMMAND,
    DESCRIPTOR,
    GROUP,
    LANES,
    REPLACE,
    Element,
    LaneLayout,
    Opcode,
    Reduction,
    Space,
)
from tilewright.golden.tmau.descriptor import spoken

from .line import AsmLine

__all__ = ["BLOCK_BYTES", "assemble", "assemble_line"]

#: Bytes of one of the blocks that sizes are counted in.
BLOCK_BYTES = 16

_REDUCTIONS = {op.name.lower(): op for op in Reduction if op}
_ELEMENTS = {spoken(element): element for element in Element}
_LAYOUTS = {layout.name.lower(): layout for layout in LaneLayout}
_SPACES = {space.name.lower(): space for space in Space}


def assemble(text):
    """The commands of a program, as a list of 512-bit integers; UsageError names line and word of what is wrong."""
    lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    return [assemble_line(line, number) for number, line in lines if line]


def assemble_line(text, number=1):
    """One command, on line ``number``."""
    line = AsmLine(text, number)
    operation = line.parts.pop(0)
    if operation not in _READERS:
        raise line.wrong(operation, "is no operation")
    opcode, fields = _READERS[operation](line)
    line.end()
    if operation == "word":
        return opcode
    return command_word(opcode, **fields, **line.tag)


def _copy_tensor(line):
    mode, rank = _mode(line)
    target, source = line.route(_SPACES, _SPACES | {"fill": None}, "memories")
    opcode = Opcode.LOAD if target == Space.SHARED else Opcode.STORE
    if target == source or (opcode == Opcode.LOAD and source is None):
        raise line.wrong(line.last, "must copy between shared and global memory")
    fields = {"fill": 1} if source is None else {}
    if line.parts and opcode == Opcode.STORE:
        opcode, fields["reduction"] = Opcode.REDUCE, line.part(_REDUCTIONS, "a reduction")
    fields |= _place(line, rank)
    if source is not None:
        fields["smem"] = line.value("an address in shared memory", COMMAND["smem"])
    if opcode == Opcode.LOAD:
        if line.operands and line.operands[0][0] != "(":
            fields |= {"signal": 1, "barrier": line.value("a barrier", COMMAND["barrier"])}
        fields |= _offsets(line, mode, rank)
    return opcode, fields


def _prefetch_tensor(line):
    mode, rank = _mode(line)
    return Opcode.PREFETCH, _place(line, rank) | _offsets(line, mode, rank)


def _mode(line):
    mode = line.part(("tiles", "im2col"), "a mode")
    ranks = {f"{rank}d": rank for rank in range(3 if mode == "im2col" else 1, 6)}
    return mode, line.part(ranks, "a number of dimensions")


def _place(line, rank):
    descriptor = line.value("the address of a descriptor", COMMAND["descriptor"])
    return {"descriptor": descriptor, "coords": line.tuple("coordinates", COMMAND["coords"], rank)}


def _offsets(line, mode, rank):
    if mode != "im2col" or not line.operands:
        return {}
    return {"offsets": line.tuple("offsets", COMMAND["offsets"], rank - 2)}


def _copy_block(line):
    fields = {}
    fields["destination_space"], fields["source_space"] = line.route(_SPACES, _SPACES, "memories")
    if line.parts:
        fields["reduction"] = line.part(_REDUCTIONS, "a reduction")
        fields["element"] = line.part(_ELEMENTS, "an element type")
    fields["destination"] = line.value("the destination", BLOCK["destination"])
    if len(line.operands) > 2:
        fields |= {"signal": 1, "barrier": line.value("a barrier", BLOCK["barrier"])}
    fields["source"] = line.value("the source", BLOCK["source"])
    return Opcode.COPY_BLOCK, fields | _blocks(line)


def _prefetch_block(line):
    return Opcode.PREFETCH_BLOCK, {"source": line.value("an address", BLOCK["source"])} | _blocks(line)


def _blocks(line):
    most = BLOCK["size"].range[1] // BLOCK_BYTES
    return {"size": BLOCK_BYTES * line.integer(line.operand("a number of 16-byte blocks"), (0, most))}


def _wait(line):
    read = {"read": 1} if line.parts and line.part(("read",), "nothing or") else {}
    return Opcode.WAIT, read | {"count": line.value("a number of groups", GROUP["count"])}


def _invalidate(line):
    return Opcode.INVALIDATE, {"descriptor": line.value("the address of a descriptor", COMMAND["descriptor"])}


def _replace(line):
    descriptor = line.value("the address of a descriptor", REPLACE["descriptor"])
    word = line.operand("a field")
    name, _, index = word.partition("[")
    if name not in (field.name for field in DESCRIPTOR.fields) or (index and index[-1] != "]"):
        raise line.wrong(word, "must be a field of the descriptor, or one with an [index]")
    fields = {"descriptor": descriptor, "field": DESCRIPTOR.index(name)}
    if index:
        fields["index"] = line.integer(word, REPLACE["index"].range, index[:-1])
    return Opcode.REPLACE, fields | {"value": line.value("a number", REPLACE["value"])}


def _lanes(line):
    fields = {"element": line.part(_ELEMENTS, "an element type")}
    fields["destination_layout"], fields["source_layout"] = line.route(_LAYOUTS, _LAYOUTS, "layouts")
    fields |= _lane_address(line, "destination")
    if len(line.operands) > 4:
        fields |= {"signal": 1, "barrier": line.value("a barrier", LANES["barrier"])}
    fields |= _lane_address(line, "source")
    fields["shape"] = line.tuple("a shape W,H,C,N", LANES["shape"], 4)
    for name, what in (("lanes_log2", "a number of lanes"), ("eu_log2", "eu_bytes")):
        word = line.operand(what)
        number = line.integer(word, (1, 1 << LANES[name].range[1]))
        if number & number - 1:
            raise line.wrong(word, "must be a power of two")
        fields[name] = number.bit_length() - 1
    return Opcode.LANES, fields


def _lane_address(line, side):
    word = line.operand(f"the {side}")
    address, _, lane = word.partition(":")
    fields = {side: line.integer(word, LANES[side].range, address)}
    if lane:
        fields[f"{side}_lane"] = line.integer(word, LANES[f"{side}_lane"].range, lane)
    return fields


def _word(line):
    return line.integer(line.operand("a number"), (0, (1 << COMMAND.bits) - 1)), {}


_READERS = {
    "copy_tensor": _copy_tensor,
    "prefetch_tensor": _prefetch_tensor,
    "copy_block": _copy_block,
    "prefetch_block": _prefetch_block,
    "commit": lambda line: (Opcode.COMMIT, {}),
    "wait": _wait,
    "wait_all": lambda line: (Opcode.WAIT_ALL, {}),
    "invalidate": _invalidate,
    "invalidate_all": lambda line: (Opcode.INVALIDATE_ALL, {}),
    "replace": _replace,
    "lanes": _lanes,
    "word": _word,
}
