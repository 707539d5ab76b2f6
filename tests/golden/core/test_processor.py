"""Checks of words, each rule separately and their order, and loops."""

import itertools

import pytest

from tilewright.golden import Windows, command_word, program_word, tmau_word
from tilewright.golden.core.processor import Loops, check_range, check_word, kind_of
from tilewright.spec.core import PROGRAM_WORDS, Kind, ProgramError

SMEM_BYTES, ADDR_WIDTH = 4096, 40
WINDOW = Windows((0x10010, 0x11010))  # in whole pages: 0x10000 to 0x11FFF
END_OF_SPACE = 1 << ADDR_WIDTH

#: Legal words.
RIGHT = [
    tmau_word(command_word("commit", tag=0x7FFF)), tmau_word(0), program_word("conv", tag=0xFFFF),
    program_word("pe", address=0x11FC0, count=4), program_word("pe", address=0x10000, count=512),
    program_word("barrier", operation="init", barrier=SMEM_BYTES - 8, value=(1 << 20) - 1),
    program_word("barrier", operation="try_wait", value=1), program_word("wait_all", engines=7),
    program_word("register", engine="pe", offset=0x144, value=0xFFFFFFFF),
    program_word("register", engine="conv", offset=0x2C), program_word("loop"), program_word("end", interrupt=1),
    program_word("kernel", first=244, count=12, argument=range(1, 13), entry=(1 << 32) - 1),
    program_word("kernel", first=255, count=1, argument=[7]), program_word("kernel"),
]  # fmt: skip

#: Words that break one rule, by code.
WRONG = {
    "kind": [0, 10 << 508, 15 << 508, (1 << 508) - 1],
    "reserved": [
        tmau_word(0) | 1 << 31, program_word("conv") | 1, program_word("conv") | 1 << 507,
        program_word("pe", address=0x10000, count=1) | 1 << 128, program_word("barrier", operation="init") | 1 << 8,
        program_word("wait_all") | 1 << 7, program_word("register", engine="pe", offset=0x100) | 1 << 96,
        program_word("loop", count=1, back=1) | 1 << 96, program_word("end") | 1 << 5, program_word("kernel") | 1,
        program_word("kernel", count=11, argument=[*[0] * 11, 1]), program_word("kernel", argument=[1 << 31]),
        program_word("kernel", first=255, count=3, argument=[1, 2, 3, 4]),
    ],
    "count": [
        program_word("pe", address=0x10000), program_word("kernel", count=13), program_word("kernel", count=15),
        program_word("kernel", first=245, count=12), program_word("kernel", first=255, count=2),
    ],
    "address": [
        program_word("pe", address=0x10020, count=1), program_word("pe", address=END_OF_SPACE - 64, count=5),
        program_word("pe", address=END_OF_SPACE, count=1), program_word("pe", address=2**64 - 64, count=4),
        program_word("pe", address=0x10000, count=(1 << 32) - 1) | (END_OF_SPACE >> 1) << 65,
    ],
    "window": [
        program_word("pe", address=0xFFC0, count=1), program_word("pe", address=0x11FC0, count=5),
        program_word("pe", address=0x12000, count=1), program_word("pe", address=END_OF_SPACE - 64, count=4),
        program_word("pe", address=0x10000, count=513),
    ],
    "register": [
        program_word("register", offset=0x20), program_word("register", engine="tmau"),
        program_word("register") | 4 << 4 | 0x20 << 64, program_word("register", engine="tmau", offset=0x24),
        program_word("register", engine="tmau", offset=0x70), program_word("register", engine="tmau", offset=0x88),
        program_word("register", engine="tmau", offset=0x100), program_word("register", engine="pe", offset=0x22),
        program_word("register", engine="pe", offset=0x148), program_word("register", engine="conv", offset=0x100),
        program_word("register", engine="pe", offset=0x80000100),
    ],
    "barrier": [
        program_word("barrier", operation="init", barrier=4, value=1),
        program_word("barrier", operation="init", barrier=SMEM_BYTES, value=1),
        program_word("barrier", operation="init", barrier=2**32 - 8, value=1),
        program_word("barrier", operation="arrive", value=1 << 20),
        program_word("barrier", operation="try_wait", value=2), program_word("barrier") | 5 << 4,
    ],
}  # fmt: skip


def check(word, has_conv=True):
    return check_word(word, has_conv, SMEM_BYTES, WINDOW, ADDR_WIDTH)


@pytest.mark.parametrize("word", RIGHT)
def test_legal_words(word):
    assert check(word) is None


@pytest.mark.parametrize(("code", "word"), [(code, word) for code, words in WRONG.items() for word in words])
def test_wrong_words(code, word):
    assert check(word) == ProgramError[code.upper()]


def test_every_reserved_bit():
    for kind, fmt in PROGRAM_WORDS.items():
        word = next(word for word in RIGHT if kind_of(word) == kind)
        bits = [bit for bit in range(512) if fmt.reserved_mask >> bit & 1]
        refused = [bit for bit in bits if check(word | 1 << bit) == ProgramError.RESERVED]
        assert refused == ([31] if kind == Kind.TMAU else bits)


def test_what_is_not_built():
    for word in (program_word("conv"), program_word("register", engine="conv", offset=0x20)):
        assert check(word, has_conv=False) == ProgramError.MISSING
    assert check(program_word("register", engine="conv"), has_conv=False) == ProgramError.MISSING
    assert check(program_word("wait_all", engines=4), has_conv=False) is None


def test_the_lowest_code_counts():
    pe = program_word("pe", address=8)
    assert check(pe | 1 << 200) == ProgramError.RESERVED
    assert check(pe) == ProgramError.COUNT
    assert check(program_word("pe", address=8, count=1)) == ProgramError.ADDRESS


@pytest.mark.parametrize(
    ("address", "count", "code"),
    [
        (0x10000, 0x2000, None),
        (0x10000, 0, None),
        (0x40, 0, None),
        (0x20, 0, ProgramError.ADDRESS),
        (END_OF_SPACE, 0, None),
        (END_OF_SPACE + 64, 0, ProgramError.ADDRESS),
        (0x10000, 0x2001, ProgramError.WINDOW),
        (0xFFC0, 64, ProgramError.WINDOW),
    ],
)
def test_ranges(address, count, code):
    assert check_range(address, count, WINDOW, ADDR_WIDTH) == code


def test_without_a_window_the_address_space_counts():
    assert check_range(END_OF_SPACE - 64, 64, Windows(), ADDR_WIDTH) is None
    assert check_range(END_OF_SPACE - 64, 65, Windows(), ADDR_WIDTH) == ProgramError.ADDRESS


def order(words, loops, most=1000):
    """Indices of ``words`` words in the order of execution, then the error if there is one.

    ``loops`` has the counts and ``back`` of words that are loops, by index.
    """
    state, index, indices = Loops(), 0, []
    while index < words and len(indices) < most:
        indices.append(index)
        place = state.next(index, *loops[index]) if index in loops else index + 1
        if isinstance(place, ProgramError):
            return [*indices, place]
        index = place
    return indices


@pytest.mark.parametrize(
    ("words", "loops", "indices"),
    [
        (4, {2: (3, 2)}, [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]),
        (4, {2: (2, 1)}, [0, 1, 2, 1, 2, 3]),
        (3, {1: (1, 1)}, [0, 1, 2]),
        (5, {1: (2, 1), 3: (2, 1)}, [0, 1, 0, 1, 2, 3, 2, 3, 4]),  # in sequence
        (4, {1: (2, 1), 2: (2, 2)}, [0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 3]),  # nested
        # The body of the second begins within the body of the first, which is then a loop in it.
        (5, {2: (2, 2), 3: (2, 2)}, [0, 1, 2, 0, 1, 2, 3, 1, 2, 0, 1, 2, 3, 4]),
    ],
)
def test_order_of_loops(words, loops, indices):
    assert order(words, loops) == indices


def nest(depth, count=2):
    return {index: (count, index) for index in range(1, depth + 1)}


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_nested(depth):
    indices = order(depth + 2, nest(depth))
    assert indices.count(0) == 2**depth
    assert indices[-1] == depth + 1


def test_five_nested_are_refused():
    indices = order(7, nest(5))
    # When the innermost would go back once more, after the outermost did.
    assert indices[-1] == ProgramError.LOOP
    assert indices[-2] == 1
    assert indices.count(5) == 1


def test_one_round_does_not_count_as_nested():
    loops = {index: (2 if index != 1 else 1, index) for index in range(1, 6)}
    assert order(7, loops)[-1] == 6


@pytest.mark.parametrize(
    ("index", "count", "back", "error"),
    [
        (3, 0, 1, ProgramError.COUNT),
        (3, 0, 0, ProgramError.COUNT),
        (3, 1, 0, ProgramError.LOOP),
        (3, 2, 4, ProgramError.LOOP),
        (3, 1, 4, ProgramError.LOOP),
        (0, 2, 1, ProgramError.LOOP),
    ],
)
def test_refusals(index, count, back, error):
    assert Loops().next(index, count, back) == error
    assert Loops().next(3, 2, 3) == 0


def test_all_small_programs_end():
    """No loop remains after its word."""
    for backs in itertools.product(range(4), repeat=3):
        loops = {index + 1: (3, back) for index, back in enumerate(backs) if back}
        indices = order(5, loops)
        assert indices[-1] in (4, ProgramError.LOOP)
