"""Writes of programs to registers of engines: puts, moves of pages, and cleared error records."""

import numpy as np
import pytest

from tilewright.golden import (
    ConvParams,
    Core,
    DeadlockError,
    GlobalMemory,
    PeSizes,
    command_word,
    instruction_word,
    page_words,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.spec.core import Engine, ProgramError
from tilewright.spec.pe import PAGE_ENTRY, SEGMENT, Operation, Put, SegmentElement

PROGRAM = 0x8000
END = program_word("end")
DATA, PAGE = 0x1000, 0x200
ENTRY = 5

#: Four words a row, in a page of its own for each; the first of them has entry ``ENTRY``.
SEGMENT_WORD = SEGMENT.pack(element=SegmentElement.U32, rank=2, size=(4, 2), page_log2=(2, 0), paged=1,
                            first_entry=ENTRY)  # fmt: skip
WRONG = tmau_word(command_word("copy_block", size=8, tag=3))


@pytest.fixture
def core():
    gmem = GlobalMemory(1 << 16)
    gmem.write(DATA, np.arange(16, dtype="<u4"))
    smem = np.zeros(4096, np.uint8)
    return Core(gmem, smem, pe=PeSizes(threads=4, regs=16, segments=4, pages=8), conv=ConvParams())


def run(core, *words):
    core.gmem.write(PROGRAM, program_bytes(words))
    return core.run(PROGRAM, len(words))


def register(engine, offset, value):
    return program_word("register", engine=engine, offset=offset, value=value)


def put(kind, index, word=0, count=16):
    """Words that put ``word``."""
    parts = [register("pe", 0x100 + 4 * place, word >> 32 * place & 0xFFFFFFFF) for place in range(count)]
    return [*parts, register("pe", 0x140, kind | index << 16)]


def instructions(*words):
    """Words that put instructions."""
    return [part for word in words for part in put(Put.INSTRUCTION, 0, word, 4)]


#: Threads read word 1 of row 0 into r3.
READ = [
    instruction_word(Operation.MOVU, ud=0, imm=1),
    instruction_word(Operation.MOV, rd=0, imm=0),
    instruction_word(Operation.MOV, rd=1, imm=0),
    instruction_word(Operation.LD, rd=3, n=1, ur=0, rf=0, imm=1),
]


def test_segments_pages_and_instructions(core):
    entry = PAGE_ENTRY.pack(address=PAGE, valid=1, loaded=1, on_chip=1)
    core.smem[PAGE : PAGE + 16].view("<u4")[:] = [10, 11, 12, 13]
    words = [*segment_words(1, SEGMENT_WORD), *page_words(ENTRY, entry), *instructions(*READ)]
    assert run(core, *words, END) is None
    assert core.pe.registers[:, 3].tolist() == [11] * 4
    assert core.pe.number == 4


def test_pages_move_in_and_out(core):
    bring = command_word("copy_block", source=DATA, destination=PAGE, destination_space="shared", size=16, tag=77)
    take = command_word("copy_block", source=PAGE, source_space="shared", destination=DATA + 64, size=16)
    come = [register("pe", 0x144, PAGE), *put(Put.PAGE_IN, ENTRY, bring)]
    assert run(core, *segment_words(1, SEGMENT_WORD), *come, *instructions(*READ), END) is None
    assert core.pe.registers[0, 3] == 1
    assert run(core, *put(Put.PAGE_OUT, ENTRY, take), END) is None
    assert core.gmem.read(DATA + 64, 16).view("<u4").tolist() == [0, 1, 2, 3]
    assert not core.pe.pages.valid[ENTRY]
    assert run(core, *come, *put(Put.PAGE_DROP, ENTRY, count=0), END) is None
    assert not core.pe.pages.valid[ENTRY]


def test_a_move_that_fails(core):
    """The entry stays; the record has the pager's tag."""
    assert run(core, *put(Put.PAGE_IN, ENTRY, command_word("copy_block", size=8, tag=77)), END) == (
        ProgramError.ENGINE, Engine.TMAU, 0x8000 | ENTRY, 17,
    )  # fmt: skip
    assert not core.pe.pages.valid[ENTRY]


def test_an_access_that_waits_for_its_page(core):
    """No later word can load it."""
    entry = PAGE_ENTRY.pack(address=PAGE, valid=1)
    with pytest.raises(DeadlockError):
        run(core, *segment_words(1, SEGMENT_WORD), *page_words(ENTRY, entry), *instructions(*READ), END)


@pytest.mark.parametrize(("kind", "index"), [(0, 0), (7, 0), (1, 1), (2, 4), (3, 8), (4, 8), (5, 8), (6, 8)])
def test_refused_puts(core, kind, index):
    record = run(core, register("pe", 0x140, kind | index << 16), END)
    assert record == (ProgramError.REGISTER, Engine.NONE, 0, 0)


def test_errors_are_cleared(core):
    clear = register("tmau", 0x20, 4)
    assert run(core, WRONG, clear, END) is None
    assert run(core, WRONG, register("tmau", 0x20, 3), END).code == ProgramError.ENGINE
    assert run(core, WRONG, register("pe", 0x20, 2), register("conv", 0x20, 2), END).code == ProgramError.ENGINE
    wrong = instruction_word(Operation.MOVU, ud=200)
    assert run(core, *instructions(wrong), register("pe", 0x20, 2), END) is None


def test_registers_without_an_effect_here(core):
    words = [register(engine, offset, 0xFFFFFFFF) for engine in ("tmau", "pe", "conv") for offset in (0x28, 0x2C)]
    assert run(core, *words, END) is None
