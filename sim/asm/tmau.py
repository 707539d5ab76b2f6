"""The text of TMAU commands: each line is a command of 512 bits.

::

    copy_tensor.mode.dim.dst,src{.op} descriptor (coordinates) {smem {barrier}} {(offsets)}
    prefetch_tensor.mode.dim descriptor (coordinates) {(offsets)}
    copy_block.dst,src{.op.type} dst_address {barrier} src_address blocks
    prefetch_block address blocks
    commit | wait{.read} groups | wait_all | invalidate descriptor | invalidate_all
    replace descriptor field{[index]} value
    lanes.type.dst_layout,src_layout dst_address{:lane} {barrier} src_address{:lane} (W,H,C,N) lanes eu_bytes

``mode`` is tiles or im2col, ``dim`` 1d to 5d, ``dst`` and ``src`` are shared or global; ``src`` of a store may also be
fill, without an address in shared memory. ``op`` is a reduction; blocks have 16 bytes. A line may end with ``tag=n``.
``//`` begins a comment. ``word n`` is a raw command. Numbers are decimal, or hexadecimal with 0x.
"""

import re

from tilewright.spec import COMMAND, DESCRIPTOR, FORMATS, Element, LaneLayout, Mode, Opcode, Space
from tilewright.spec.fields import names
from tilewright.spec.names import suggestion
from tilewright.spec.tmau import REDUCTIONS

from .language import Flag, Language, Number, Optional, Part, TextLine, When

__all__ = ["BITS", "AsmLine", "assemble", "disassemble"]

_BLOCK_BYTES = 16
_SPACES = names(Space)
_REDUCTION = Part("reduction", REDUCTIONS, "a reduction")


class AsmLine(TextLine):
    """A line of operands with spaces between them, which may end with ``tag=n``, the field ``tag`` of ``common``."""

    WITHOUT_COMMON = "cannot have a tag"
    _TOKEN = re.compile(r"\([^()]*\)|\S+")

    def __init__(self, text, number):
        super().__init__(text, number)
        if self.operands and self.operands[-1].startswith("tag="):
            word = self.operands.pop()
            self.common = {"tag": self.integer(word, COMMAND["tag"].range, word.removeprefix("tag="))}

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        tag = [f"tag={fields['tag']}"] if fields["tag"] else []
        return " ".join([operation, *operands, *tag])

    def route(self, targets, sources, description):
        """Reads the part ``dst,src``; returns the two values."""
        word = self.part_text(f"{description}, as dst,src")
        target, comma, source = word.partition(",")
        if not comma or target not in targets or source not in sources:
            unknown = [name for name in word.split(",") if name not in sources]
            sentence = f"must be dst,src with dst {', '.join(targets)} and src {', '.join(sources)}"
            raise self.wrong(word, sentence + (suggestion(unknown[0], sources) if comma and unknown else ""))
        return targets[target], sources[source]


class _Barrier(Number):
    """A barrier to signal, which may be omitted; ``following`` more operands are required."""

    def __init__(self, following=0):
        super().__init__("barrier", "a barrier")
        self._following = following

    def read(self, line, fmt, fields):
        if len(line.operands) > self._following and line.operands[0][0] != "(":
            fields["signal"] = 1
            super().read(line, fmt, fields)

    def write(self, fields):
        return super().write(fields) if fields["signal"] else ""


class _Blocks(Number):
    """A number of bytes, in blocks."""

    def parse(self, word, line, fmt, fields):
        fields[self.field] = _BLOCK_BYTES * line.integer(word, (0, fmt[self.field].range[1] // _BLOCK_BYTES))

    def write(self, fields):
        return str(fields[self.field] // _BLOCK_BYTES)


class _DescriptorField(Number):
    """The name of a field of the descriptor, with or without an index."""

    def __init__(self):
        super().__init__("field", "a field")

    def parse(self, word, line, fmt, fields):
        name, _, index = word.partition("[")
        if name not in (field.name for field in DESCRIPTOR.fields) or (index and index[-1] != "]"):
            hint = suggestion(name, (field.name for field in DESCRIPTOR.fields))
            raise line.wrong(word, f"must be a field of the descriptor, or one with an [index]{hint}")
        fields["field"] = DESCRIPTOR.index(name)
        if index:
            fields["index"] = line.integer(word, fmt["index"].range, index[:-1])

    def write(self, fields):
        field = DESCRIPTOR.fields[fields["field"]]
        return f"{field.name}[{fields['index']}]" if field.count or fields["index"] else field.name


class _LaneAddress(Number):
    """An address in each lane, with or without the lane of channel 0."""

    def parse(self, word, line, fmt, fields):
        address, _, lane = word.partition(":")
        fields[self.field] = line.integer(word, fmt[self.field].range, address)
        if lane:
            fields[f"{self.field}_lane"] = line.integer(word, fmt[f"{self.field}_lane"].range, lane)

    def write(self, fields):
        lane = fields[f"{self.field}_lane"]
        return f"{fields[self.field]:#x}" + (f":{lane}" if lane else "")


class _PowerOfTwo(Number):
    """A power of two, whose logarithm is the value of the field."""

    def parse(self, word, line, fmt, fields):
        number = line.integer(word, (1, 1 << fmt[self.field].range[1]))
        if number & number - 1:
            raise line.wrong(word, "must be a power of two")
        fields[self.field] = number.bit_length() - 1

    def write(self, fields):
        return str(1 << fields[self.field])


class _Tuple:
    """``count(fields)`` numbers in parentheses, with the fields of the items before."""

    def __init__(self, field, description, count):
        self._field, self._description, self._count = field, description, count

    def read(self, line, fmt, fields):
        word = line.operand(f"{self._description} in parentheses")
        limits, count = fmt[self._field].range, self._count(fields)
        fields[self._field] = line.integers(word, limits, count, word, f"{self._description}: ")

    def write(self, fields):
        return f"({','.join(map(str, fields[self._field][: self._count(fields)]))})"


class _Offsets(_Tuple):
    """Offsets of an im2col load, which may be omitted."""

    def __init__(self):
        super().__init__("offsets", "offsets", lambda fields: fields["rank"] - 2)

    def read(self, line, fmt, fields):
        if fields["mode"] == "im2col" and line.operands:
            super().read(line, fmt, fields)

    def write(self, fields):
        return super().write(fields) if fields["mode"] == "im2col" and any(fields["offsets"]) else ""


class _Route:
    """The part ``dst,src``: names of values of the two fields with this ending."""

    def __init__(self, ending, names, description):
        self._fields, self._names = (f"destination_{ending}", f"source_{ending}"), names
        self._description = description
        self._written = {value: name for name, value in names.items()}

    def read(self, line, fmt, fields):
        fields |= zip(self._fields, line.route(self._names, self._names, self._description), strict=True)

    def write(self, fields):
        return f".{','.join(self._written[fields[field]] for field in self._fields)}"


class _TensorKind:
    """The parts ``mode.dim``, which belong to the descriptor.

    If they are unknown, nonzero offsets mean im2col, and a tile has two dimensions or as many as nonzero coordinates
    need.
    """

    def read(self, line, fmt, fields):
        fields["mode"] = line.part({mode: mode for mode in ("tiles", "im2col")}, "a mode")
        ranks = {f"{rank}d": rank for rank in range(3 if fields["mode"] == "im2col" else 1, 6)}
        fields["rank"] = line.part(ranks, "a number of dimensions")

    def write(self, fields):
        fields.setdefault("mode", "im2col" if any(fields["offsets"]) else "tiles")
        if "rank" not in fields:
            least = 2 + _used(fields["offsets"])
            fields["rank"] = max(least, _used(fields["coords"]))
        return f".{fields['mode']}.{fields['rank']}d"


def _used(numbers):
    """The count of numbers up to the last nonzero one."""
    return max((place for place, number in enumerate(numbers, 1) if number), default=0)


class _CopiedTensor:
    """The parts ``dst,src{.op}``, which make a load, a store or a reduction."""

    _reduction = Optional(_REDUCTION)

    def read(self, line, fmt, fields):
        target, source = line.route(_SPACES, _SPACES | {"fill": None}, "memories")
        if target == source or (target == Space.SHARED and source is None):
            raise line.wrong(line.last, "must copy between shared and global memory")
        if target == Space.SHARED:
            return
        fields |= {"opcode": Opcode.REDUCE if line.parts else Opcode.STORE, "fill": int(source is None)}
        self._reduction.read(line, fmt, fields)

    def write(self, fields):
        if fields["opcode"] == Opcode.LOAD:
            return ".shared,global"
        return f".global,{'fill' if fields['fill'] else 'shared'}{self._reduction.write(fields)}"


_DESCRIPTOR = Number("descriptor", "the address of a descriptor")
_COORDS = _Tuple("coords", "coordinates", lambda fields: fields["rank"])
_ELEMENT = Part("element", names(Element), "an element type")
_BLOCKS = _Blocks("size", "a number of 16-byte blocks")

_SYNTAXES = {
    "copy_tensor": (
        (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE),
        _TensorKind(),
        _CopiedTensor(),
        _DESCRIPTOR,
        _COORDS,
        When(lambda fields: not fields.get("fill"), Number("smem", "an address in shared memory")),
        When(lambda fields: fields["opcode"] == Opcode.LOAD, _Barrier()),
        When(lambda fields: fields["opcode"] == Opcode.LOAD, _Offsets()),
    ),
    "prefetch_tensor": (Opcode.PREFETCH, _TensorKind(), _DESCRIPTOR, _COORDS, _Offsets()),
    "copy_block": (
        Opcode.COPY_BLOCK,
        _Route("space", _SPACES, "memories"),
        Optional(_REDUCTION, _ELEMENT),
        Number("destination", "the destination"),
        _Barrier(following=2),
        Number("source", "the source"),
        _BLOCKS,
    ),
    "prefetch_block": (Opcode.PREFETCH_BLOCK, Number("source", "an address"), _BLOCKS),
    "commit": (Opcode.COMMIT,),
    "wait": (Opcode.WAIT, Flag("read"), Number("count", "a number of groups", "d")),
    "wait_all": (Opcode.WAIT_ALL,),
    "invalidate": (Opcode.INVALIDATE, _DESCRIPTOR),
    "invalidate_all": (Opcode.INVALIDATE_ALL,),
    "replace": (Opcode.REPLACE, _DESCRIPTOR, _DescriptorField(), Number("value", "a number")),
    "lanes": (
        Opcode.LANES,
        _ELEMENT,
        _Route("layout", names(LaneLayout), "layouts"),
        _LaneAddress("destination", "the destination"),
        _Barrier(following=4),
        _LaneAddress("source", "the source"),
        _Tuple("shape", "a shape W,H,C,N", lambda fields: 4),
        _PowerOfTwo("lanes_log2", "a number of lanes"),
        _PowerOfTwo("eu_log2", "eu_bytes"),
    ),
}
_LANGUAGE = Language(AsmLine, FORMATS, _SYNTAXES)

#: Bits of a command.
BITS = _LANGUAGE.bits

assemble = _LANGUAGE.assemble


def disassemble(word, tmap=None):
    """The line of a command, or ``word n`` if no line stands for it.

    Mode and rank belong to the descriptor. Without ``tmap``, nonzero offsets mean im2col, and the rank is the smallest
    from 2 with all nonzero coordinates and offsets.
    """
    known = {} if tmap is None else {"mode": "im2col" if tmap.mode == Mode.IM2COL else "tiles", "rank": tmap.rank}
    return _LANGUAGE.disassemble(word, **known)
