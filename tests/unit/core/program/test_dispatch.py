"""Words take the documented cycles, and fail with their code. Loops are proved in tests/formal/core."""

import pytest

from tilewright.golden import conv_words, program_word, tmau_word
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams, core_regions
from tilewright.hw.core.program.dispatch import SETTLED, Dispatcher
from tilewright.spec.core import ProgramError
from tilewright.verify.pysim.simulate import elaborated, simulate

PARAMS = CORE_PRESETS["unit"].replace(conv=CONV_UNIT_PRESETS["unit"], program=ProgramParams())


def dispatcher():
    return Dispatcher(PARAMS, core_regions(PARAMS))


def run(words, *, ready=True, **inputs):
    """Cycles in which words are done, with words at once and engines that take all; and the code at the end."""
    dut, done, codes = elaborated(dispatcher), [], []

    async def bench(ctx):
        left = list(words)
        ports = (dut.commands, dut.jobs, dut.runs, dut.calls, dut.accesses.requests)
        for port in ports:
            ctx.set(port.ready, ready)
        values = {"call_passed": 1, "drained": 1, "range_done": 1, "idle": 7} | inputs
        for name, value in values.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.accesses.answers.valid, 1)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for cycle in range(200):
            ctx.set(dut.words.valid, bool(left))
            if left:
                kind = left[0] >> 508
                ctx.set(dut.words.payload, {"word": left[0], "kind": kind, "tag": left[0] >> 16 & 0xFFFF})
            _, _, taken, is_done, failed, code, busy = await ctx.tick().sample(
                dut.words.ready, dut.word_done, dut.failed, dut.code, dut.busy
            )
            if is_done:
                done.append(cycle)
            if failed:
                codes.append(code)
            if taken and left:
                left.pop(0)
            if not busy:
                return

    simulate(dut, bench)
    return done, codes


def test_cycles_of_words():
    """Two cycles a word, and three a job; the end waits until engines are settled."""
    words = [tmau_word(5), tmau_word(6), *conv_words(7), tmau_word(8), program_word("end")]
    done, codes = run(words)
    begin = done[0]
    assert [cycle - begin for cycle in done] == [0, 2, 5, 7, 7 + 1 + SETTLED]
    assert codes == []


@pytest.mark.parametrize(
    ("word", "inputs", "code"),
    [
        (program_word("pe", count=1), {"range_code": ProgramError.WINDOW}, ProgramError.WINDOW),
        (program_word("barrier"), {"call_passed": 0, "call_failed": 1}, ProgramError.BARRIER),
        (program_word("loop", count=2, back=1), {}, ProgramError.LOOP),
        (program_word("pe", count=1), {"run_failed": 1}, ProgramError.BUS),
    ],
)
def test_words_that_fail(word, inputs, code):
    # The program's own range is checked first, and by the same block.
    words = [word, program_word("end")]
    done, codes = run(words, **inputs)
    assert codes == [code] and done == []


def test_it_stops():
    done, codes = run([tmau_word(5), program_word("end")], stops=1)
    assert done == [] and codes == []
