"""Words of programs by hand, and refusals."""

import pytest

from tilewright.golden import (
    command_word,
    conv_words,
    job_word,
    page_words,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.spec.core import PROGRAM_REGISTERS, PROGRAM_WORDS, WORD_BITS, WRITABLE, Engine, Kind, ProgramError

#: Kind and fields, and the 64-bit words that they are, but for zeros: by their numbers.
BY_HAND = [
    ("conv", {"tag": 0xBEEF}, {0: 0xBEEF_0000, 7: 2 << 60}),
    ("pe", {"tag": 1, "count": 0x12345678, "address": 0xFEDC_BA98_7654_3200},
     {0: 0x12345678_0001_0000, 1: 0xFEDC_BA98_7654_3200, 7: 3 << 60}),
    ("barrier", {"operation": "expect_tx", "tag": 2, "value": 0xFFFFF, "barrier": 0x1238},
     {0: 0x000FFFFF_0002_0020, 1: 0x1238, 7: 4 << 60}),
    ("barrier", {"operation": "try_wait", "value": 1}, {0: 0x1_0000_0040, 7: 4 << 60}),
    ("wait_all", {"engines": 5, "tag": 0xFFFF}, {0: 0xFFFF_0050, 7: 5 << 60}),
    ("register", {"engine": "pe", "tag": 3, "value": 0xCAFE, "offset": 0x140},
     {0: 0xCAFE_0003_0020, 1: 0x140, 7: 6 << 60}),
    ("loop", {"tag": 4, "count": 7, "back": 9}, {0: 0x7_0004_0000, 1: 9, 7: 7 << 60}),
    ("end", {"interrupt": 1, "tag": 5}, {0: 0x5_0010, 7: 8 << 60}),
    ("kernel", {"first": 0xA5, "count": 3, "tag": 0xBEEF, "entry": 0x1234, "argument": [5, 6, 0xFEDCBA98]},
     {0: 0x1234_BEEF_3A50, 1: 6 << 32 | 5, 2: 0xFEDCBA98, 7: 9 << 60}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "words"), BY_HAND)
def test_words_by_hand(kind, fields, words):
    word = program_word(kind, **fields)
    assert {place: part for place in range(8) if (part := word >> 64 * place & (1 << 64) - 1)} == words


def test_words_by_hand_have_all_fields_and_kinds():
    assert {kind for kind, _, _ in BY_HAND} == {kind.name.lower() for kind in Kind if kind != Kind.TMAU}
    for kind, fmt in PROGRAM_WORDS.items():
        used = {name for name, fields, _ in BY_HAND if name == kind.name.lower() for name in fields}
        assert kind == Kind.TMAU or used == {field.name for field in fmt.fields} - {"kind"}


def test_a_command_and_a_job():
    command = command_word("copy_block", size=16, tag=0x7FFF)
    assert tmau_word(command) == command | 1 << 508
    job = job_word(operation="max_pool", output="element", tag=9, channels=3, addend_pitch=(0, 0, 1 << 31))
    first, low, high = conv_words(job)
    assert first == 2 << 508 | 9 << 16
    assert low | high << 512 == job
    assert high


def test_tables_of_the_processing_engine():
    word = sum(0x1111_1111 * (place + 1) << 32 * place for place in range(8))
    words = [PROGRAM_WORDS[Kind.REGISTER].unpack(word) for word in segment_words(3, word, tag=7)]
    assert [(fields["offset"], fields["value"]) for fields in words] == [
        *((0x100 + 4 * place, 0x1111_1111 * (place + 1)) for place in range(8)), (0x140, 0x3_0002),
    ]  # fmt: skip
    assert {(fields["engine"], fields["tag"]) for fields in words} == {(Engine.PE, 7)}
    words = [PROGRAM_WORDS[Kind.REGISTER].unpack(word) for word in page_words(4, 0x8765_4321_0000_0010)]
    assert [(fields["offset"], fields["value"]) for fields in words] == [
        (0x100, 0x10), (0x104, 0x8765_4321), (0x140, 0x4_0003)
    ]  # fmt: skip


def test_a_program_in_memory():
    raw = program_bytes([1, program_word("end")])
    assert len(raw) == 128
    assert [int(place) for place in raw.nonzero()[0]] == [0, 127]
    assert raw[127] == 0x80
    assert len(program_bytes([])) == 0


def test_every_bit_has_one_meaning():
    """Kind and tag are in one place, and TMAU has all of a command's bits but the pager's."""
    for fmt in PROGRAM_WORDS.values():
        assert fmt.bits == WORD_BITS
        assert (fmt["kind"].lsb, fmt["kind"].width, fmt["tag"].lsb) == (508, 4, 16)


def test_registers_that_programs_write():
    names = {engine: {register.name for register in offsets.values()} for engine, offsets in WRITABLE.items()}
    assert names[Engine.TMAU] == names[Engine.CONV] == {"control", "irq_status", "irq_enable"}
    assert names[Engine.PE] == names[Engine.TMAU] | {"put", "page_address", *(f"data{word}" for word in range(16))}


def test_registers_by_hand():
    offsets = {register.name: register.offset for register in PROGRAM_REGISTERS}
    assert len(set(offsets.values())) == len(offsets)
    assert [offsets[name] for name in ("control", "status", "error", "error_word", "program_lo", "program_words",
                                       "watchdog")] == [0x20, 0x24, 0x30, 0x34, 0x90, 0x98, 0x9C]  # fmt: skip
    assert PROGRAM_REGISTERS[0].reset.to_bytes(4, "big") == b"TWCP"
    assert len(ProgramError) == 15


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: program_word("nop"), ValueError,
         "kind must be one of tmau, conv, pe, barrier, wait_all, register, loop, end, kernel, not 'nop'"),
        (lambda: program_word("loop", rounds=1), ValueError,
         "a LOOP word has no field 'rounds': its fields are tag, count, back, kind"),
        (lambda: program_word("loop", count=-1), ValueError, "count must be 0 to 4294967295, not -1"),
        (lambda: program_word("loop", count="3"), TypeError, "count must be an integer, not '3'"),
        (lambda: program_word("barrier", operation="drop"), ValueError,
         "operation must be one of init, arrive, expect_tx, complete_tx, try_wait, not 'drop'"),
        (lambda: tmau_word(command_word("commit", tag=0x8000)), ValueError,
         "the command of a program must have a tag below 0x8000 and no kind: 0x80000009"),
        (lambda: tmau_word(1 << 508), ValueError,
         f"the command of a program must have a tag below 0x8000 and no kind: {1 << 508:#x}"),
        (lambda: conv_words(1 << 1024), ValueError, "job must be an integer of 1024 bits, not"),
        (lambda: segment_words(65536, 0), ValueError, "index must be 0 to 65535, not 65536"),
        (lambda: page_words(0, 1 << 64), ValueError, "page entry must be an integer of 64 bits, not"),
        (lambda: program_bytes([1 << 512]), ValueError, "word must be an integer of 512 bits, not"),
    ],
)  # fmt: skip
def test_refused_words(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(sentence)
