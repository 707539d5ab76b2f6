"""Kernels: which instructions leave, in and out of loops; loads of both memories; instructions at wrong places."""

import pytest

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.hw.pe.issue.kernels import Kernels
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import Operation, Target
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, set_together

PARAMS = PE_PRESETS["unit"].replace(kernel_words=16, lookup_words=256)
CALL, RETURN, END = word(Operation.CALL, imm=2), word(Operation.RETURN), word(Operation.END)


def plain(number):
    return word(Operation.MOVU, ud=1, imm=number)


def rounds(count):
    return word(Operation.LOOP, b=Operand.IMMEDIATE, imm=count)


def load(first, *words):
    return [word(Operation.LOAD, target=Target.CODE, n=len(words), imm=first), *words]


#: A LOOP whose count is in a uniform register.
COUNTED = word(Operation.LOOP, b=Operand.UNIFORM, rb=3)


def run(words, *, counts=(), mode="none", stop=None):
    """What leaves, as pairs of a word and whether it is misplaced; the entries that are written; words reported.

    ``counts`` are in uniform registers when loops ask; with ``stop`` the core is stopped after so many have left.
    """
    dut, left, entries, counts = Kernels(PARAMS), [], {}, list(counts)
    reported = {"ended": 0, "loaded": 0}

    async def sink(ctx):
        pause = 0
        while True:
            set_together(ctx, (dut.o.ready, pause == 0), (dut.stopped, stop is not None and len(left) >= stop))
            asked = None
            if ctx.get(dut.o.valid) and pause == 0:
                item = ctx.get(dut.o.payload)
                left.append((item.word, item.misplaced, item.index, item.inside))
                pause = len(left) % 3 if STALL_MODES[mode]["stall"] else 0
                asked = item.word == COUNTED and not item.misplaced and item.inside
            else:
                pause = max(pause - 1, 0)
            for name in reported:
                reported[name] += ctx.get(getattr(dut, name))
            if ctx.get(dut.entry_write):
                entries[ctx.get(dut.entry)] = ctx.get(dut.entry_data)
            await ctx.tick()
            if asked:
                ctx.set(dut.o.ready, 0)
                await ctx.tick().repeat(3)
                set_together(ctx, (dut.loop_count, {"valid": 1, "count": counts.pop(0)}))
                await ctx.tick()
                ctx.set(dut.loop_count.valid, 0)

    async def source(ctx):
        ctx.set(dut.drained, 1)
        await send(ctx, dut.i, words)
        await ctx.tick().repeat(120)

    simulate(dut, source, background=[sink])
    return left, entries, reported


@pytest.mark.parametrize("mode", ["none", "stall"])
def test_nested_loops(mode):
    kernel = [plain(0), rounds(2), plain(1), rounds(3), plain(2), END, END, plain(3), RETURN]
    inner = [rounds(3), *[plain(2), END] * 3]
    body = [plain(0), rounds(2), *[plain(1), *inner, END] * 2, plain(3), RETURN]
    left, _, reported = run([*load(2, *kernel), CALL, plain(9), CALL], mode=mode)
    assert [item[0] for item in left] == [load(2, *kernel)[0], CALL, *body, plain(9), CALL, *body]
    assert not any(item[1] for item in left)
    assert [item[3] for item in left] == [0, 1, *[1] * len(body), 0, 1, *[1] * len(body)]
    assert [item[2] for item in left[2:5]] == [2, 3, 4], "index in instruction memory"
    assert reported == {"ended": 2, "loaded": len(kernel)}


def test_a_count_in_a_uniform_register():
    kernel = [COUNTED, plain(1), END, RETURN]
    left, *_ = run([*load(2, *kernel), CALL, CALL, plain(7)], counts=[2, 0])
    assert [item[0] for item in left][1:] == [CALL, COUNTED, *[plain(1), END] * 2, RETURN, CALL, COUNTED, plain(7)]


WRONG = {
    "end without a loop": [END],
    "a third loop": [rounds(1), rounds(1), rounds(1)],
    "a call in a kernel": [CALL],
    "past the last instruction": [plain(n) for n in range(14)],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_places_end_a_kernel(name):
    kernel = WRONG[name]
    left, _, reported = run([*load(2, *kernel), CALL, plain(9)])
    inside = left[2:-1]
    assert [item[0] for item in inside][: len(kernel)] == kernel
    assert [item[1] for item in inside] == [0] * (len(inside) - 1) + [1]
    assert inside[-1][2] == (16 if name.startswith("past") else 1 + len(kernel))
    assert left[-1][0] == plain(9) and reported["ended"] == 1


def test_a_load_in_a_kernel_is_misplaced_and_takes_nothing():
    inner = word(Operation.LOAD, target=Target.CODE, n=1, imm=0)
    left, *_ = run([*load(2, inner, plain(1), RETURN), CALL])
    assert [item[:2] for item in left[2:]] == [(inner, 1), (plain(1), 0), (RETURN, 0)]


def test_wrong_places_in_the_stream():
    far = word(Operation.CALL, imm=16)
    beyond, entries = load(15, plain(1), plain(2)), word(Operation.LOAD, target=Target.LOOKUP, n=1, imm=6)
    left, written, _ = run([RETURN, rounds(2), END, far, *beyond, entries, 5, plain(3), word(Operation.CALL, imm=15)])
    assert [item[:3] for item in left[:6]] == [
        (RETURN, 1, 0), (rounds(2), 1, 0), (END, 1, 0), (far, 1, 16), (beyond[0], 1, 0), (entries, 1, 0)
    ]  # fmt: skip
    assert left[6][0] == plain(3) and not written
    assert left[8][0] == 0, "what was not loaded is an empty word"


def test_words_that_are_no_instruction_change_nothing():
    """A reserved bit, no rounds, no words: refused with OPCODE, not executed."""
    words = [CALL | 1 << 8, word(Operation.LOAD, n=1) & ~(0xFFFF << 48), plain(1)]
    left, *_ = run([*load(2, plain(5), RETURN), *words])
    assert [item[0] for item in left][1:] == words
    loop = rounds(1) & ~(0xFFFFFFFF << 96)
    left, *_ = run([*load(2, loop, plain(5)), CALL, plain(6)])
    assert [item[0] for item in left][2:] == [loop, plain(6)], "the kernel ends"


def test_entries_of_the_lookup_memory():
    first, words = word(Operation.LOAD, target=Target.LOOKUP, n=2, imm=252 - 4), [0x4_00000003_00000002_00000001, 7]
    left, entries, reported = run([first, *words, plain(1)])
    assert [item[0] for item in left] == [first, plain(1)]
    assert entries == {248: 1, 249: 2, 250: 3, 251: 4, 252: 7, 253: 0, 254: 0, 255: 0}
    assert reported["loaded"] == 2


def test_a_stop_ends_a_kernel():
    left, _, reported = run([*load(2, rounds(1 << 20), END), CALL, plain(4), CALL], stop=10)
    assert len(left) <= 13 and [item[0] for item in left[-2:]] == [plain(4), CALL]
    assert reported["ended"] == 1
