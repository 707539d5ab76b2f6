"""Words of programs, packed (docs/core.md, "Words")."""

import numpy as np

from ..arguments import field_value, integer, listed, member, packed
from ..spec.conv.job import JOB
from ..spec.core.word import JOB_WORDS, PAGER_TAG_BIT, PROGRAM_WORDS, WORD_BITS, WORD_BYTES, Engine, Kind
from ..spec.pe.registers import PE_REGISTERS, Put
from ..spec.pe.segment import PAGE_ENTRY, SEGMENT

__all__ = ["KIND_LSB", "conv_words", "page_words", "program_bytes", "program_word", "segment_words", "tmau_word"]

#: First bit of a word's kind.
KIND_LSB = PROGRAM_WORDS[Kind.END]["kind"].lsb
_PUT = next(register for register in PE_REGISTERS if register.name == "put")
_DATA = next(register for register in PE_REGISTERS if register.name == "data0")


def program_word(kind, **fields):
    """A packed word of 512 bits; fields left out are zero.

    Kind, and what has an enumeration, may be given by name: ``program_word("barrier", operation="init", value=1)``.
    ValueError for a field that the format does not have or a value that does not fit it, TypeError for a value of the
    wrong kind. A command is packed by :func:`tmau_word`, a job by :func:`conv_words`.
    """
    kind = member("kind", Kind, kind)
    known = {field.name: field for field in PROGRAM_WORDS[kind].fields}
    for name in fields:
        if name not in known:
            raise ValueError(f"a {kind.name} word has no field {name!r}: its fields are {', '.join(known)}")
    values = {name: field_value(known[name], value) for name, value in fields.items()}
    return PROGRAM_WORDS[kind].pack(**values | {"kind": kind})


def tmau_word(command):
    """The word of a packed command of the TMAU; ValueError for one with a tag from 0x8000 on."""
    command = packed("command", command, WORD_BITS)
    if command >> KIND_LSB or command >> PAGER_TAG_BIT & 1:
        raise ValueError(f"the command of a program must have a tag below 0x8000 and no kind: {command:#x}")
    return command | Kind.TMAU << KIND_LSB


def conv_words(job):
    """The three words of a packed job of the convolution engine, as a list; the first one has the job's tag."""
    job = packed("job", job, JOB.bits)
    halves = [job >> WORD_BITS * half & (1 << WORD_BITS) - 1 for half in range(JOB_WORDS)]
    return [program_word("conv", tag=JOB.unpack(job)["tag"]), *halves]


def segment_words(index, word, tag=0):
    """The words that write segment ``index`` of the processing engine, a packed segment, as a list."""
    return _put(Put.SEGMENT, index, packed("segment", word, SEGMENT.bits), SEGMENT.bits, tag)


def page_words(index, word, tag=0):
    """The words that write page entry ``index`` of the processing engine, a packed entry, as a list."""
    return _put(Put.PAGE, index, packed("page entry", word, PAGE_ENTRY.bits), PAGE_ENTRY.bits, tag)


def _put(kind, index, word, bits, tag):
    """Words that write registers of the processing engine: those that a number is put together in, and ``put``."""
    writes = [(_DATA.offset + 4 * number, word >> 32 * number & 0xFFFFFFFF) for number in range(bits // 32)]
    index = integer("index", index, *_PUT.format["index"].range)
    writes.append((_PUT.offset, _PUT.format.pack(kind=kind, index=index)))
    return [program_word("register", engine=Engine.PE, offset=place, value=value, tag=tag) for place, value in writes]


def program_bytes(words):
    """A program as it lies in memory, a uint8 array."""
    raw = b"".join(packed("word", word, WORD_BITS).to_bytes(WORD_BYTES, "little") for word in listed("words", words))
    return np.frombuffer(raw, np.uint8).copy()
