"""Programs of the command processor: packed words, and programs of layers (docs/core.md, "Words")."""

import numpy as np

from tilewright.spec import CHUNK_BYTES
from tilewright.spec.conv import JOB
from tilewright.spec.core import JOB_WORDS, PAGER_TAG_BIT, PROGRAM_WORDS, WORD_BITS, WORD_BYTES, Engine, Kind
from tilewright.spec.pe import PAGE_ENTRY, PE_REGISTERS, SEGMENT, Put

from ..arguments import format_values, instance, integer, listed, member, packed
from ..conv.layer import ConvLayer
from ..tmau.machine import command_word

__all__ = [
    "KIND_LSB", "LayerProgram", "conv_words", "page_words", "program_bytes", "program_word", "segment_words",
    "tmau_word",
]  # fmt: skip

#: First bit of the kind of a word.
KIND_LSB = PROGRAM_WORDS[Kind.END]["kind"].lsb
_PUT, _DATA = ({register.name: register for register in PE_REGISTERS}[name] for name in ("put", "data0"))


def program_word(kind, **fields):
    """A packed word of 512 bits; omitted fields are zero.

    Members of enumerations may be names: ``program_word("barrier", operation="init", value=1)``. ValueError for an
    unknown field or a value out of range, TypeError for a value of the wrong kind. Commands are packed by
    :func:`tmau_word`, jobs by :func:`conv_words`.
    """
    kind = member("kind", Kind, kind)
    fmt = PROGRAM_WORDS[kind]
    return fmt.pack(**format_values(f"{kind.name} word", fmt.fields, fields) | {"kind": kind})


def tmau_word(command):
    """The word of a packed command of the TMAU; ValueError for a tag from 0x8000."""
    command = packed("command", command, WORD_BITS)
    if command >> KIND_LSB or command >> PAGER_TAG_BIT & 1:
        raise ValueError(f"the command of a program must have a tag below 0x8000 and no kind: {command:#x}")
    return command | Kind.TMAU << KIND_LSB


def conv_words(job):
    """The list of three words of a packed job of the convolution engine; the first word has the tag of the job."""
    job = packed("job", job, JOB.bits)
    halves = [job >> WORD_BITS * half & (1 << WORD_BITS) - 1 for half in range(JOB_WORDS)]
    return [program_word("conv", tag=JOB.unpack(job)["tag"]), *halves]


def segment_words(index, word, tag=0):
    """The list of words that write a packed segment to segment ``index`` of the processing engine."""
    return _put(Put.SEGMENT, index, packed("segment", word, SEGMENT.bits), SEGMENT.bits, tag)


def page_words(index, word, tag=0):
    """The list of words that write a packed page entry to entry ``index`` of the processing engine."""
    return _put(Put.PAGE, index, packed("page entry", word, PAGE_ENTRY.bits), PAGE_ENTRY.bits, tag)


def _put(kind, index, word, bits, tag):
    """Words that write the data registers of the processing engine, then ``put``."""
    writes = [(_DATA.offset + 4 * number, word >> 32 * number & 0xFFFFFFFF) for number in range(bits // 32)]
    index = integer("index", index, *_PUT.format["index"].range)
    writes.append((_PUT.offset, _PUT.format.pack(kind=kind, index=index)))
    return [program_word("register", engine=Engine.PE, offset=offset, value=value, tag=tag) for offset, value in writes]


def program_bytes(words):
    """The bytes of a program in memory, a uint8 array."""
    raw = b"".join(packed("word", word, WORD_BITS).to_bytes(WORD_BYTES, "little") for word in listed("words", words))
    return np.frombuffer(raw, np.uint8).copy()


class LayerProgram:
    """A :class:`ConvLayer` with the global memory that its program needs.

    Tensors have the same addresses in global and in shared memory: one block copy loads all operands of the job, and
    another one stores its results, where :meth:`ConvLayer.result` reads them.

    Parameters
    ----------
    layer : ConvLayer
    smem_bytes : int
        Bytes of shared memory; ValueError if the layer needs more.

    Attributes
    ----------
    memory : uint8 array
        Global memory from address 0.
    words : list of int
        The program, packed.
    address : int
        Of the program in ``memory``.
    """

    def __init__(self, layer, smem_bytes=128 * 1024):
        instance("layer", layer, ConvLayer)
        if len(layer.smem) > integer("smem_bytes", smem_bytes):
            raise ValueError(f"smem_bytes must be {len(layer.smem)} or more for this layer, not {smem_bytes}")
        y = JOB.unpack(layer.word)["y"]
        written = -(-layer.shape.bytes_written // CHUNK_BYTES) * CHUNK_BYTES
        self.words = [
            program_word("wait_all"),
            _copy("global", "shared", 0, y),
            program_word("wait_all"),
            *conv_words(layer.word),
            program_word("wait_all"),
            _copy("shared", "global", y, written),
            program_word("end", interrupt=1),
        ]
        self.address = len(layer.smem)
        self.memory = np.concatenate([layer.smem, program_bytes(self.words)])


def _copy(source, destination, address, size):
    """The word of a copy from one memory to the same addresses in the other."""
    spaces = {"source_space": source, "destination_space": destination}
    return tmau_word(command_word("copy_block", source=address, destination=address, size=size, **spaces))
