"""The instructions of words KERNEL, and a word that is given up."""

import random

import pytest

from tilewright.hw.core.program.kernel import KernelCaller
from tilewright.spec.core import ARGUMENTS, PROGRAM_WORDS, Kind
from tilewright.spec.pe import INSTRUCTIONS, Operation
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together


def random_word(rng):
    count = rng.randrange(ARGUMENTS + 1)
    given = [rng.getrandbits(32) for _ in range(count)]
    fields = {"kind": Kind.KERNEL, "entry": rng.getrandbits(32), "first": rng.randrange(8), "count": count}
    word = PROGRAM_WORDS[Kind.KERNEL].pack(**fields, argument=given)
    movus = [INSTRUCTIONS[Operation.MOVU].pack(opcode=Operation.MOVU, ud=fields["first"] + n, imm=value)
             for n, value in enumerate(given)]  # fmt: skip
    return word, [*movus, INSTRUCTIONS[Operation.CALL].pack(opcode=Operation.CALL, imm=fields["entry"])]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_words(mode):
    """Each word's instructions, of which some words are given up in the middle."""
    rng, dut = random.Random(f"kernel words {mode}"), KernelCaller()
    stall, taken, wanted = STALL_MODES[mode]["stall"], [], []

    async def testbench(ctx):
        for _ in range(60):
            word, instructions = random_word(rng)
            ends = rng.randrange(len(instructions)) if rng.random() < 0.3 else len(instructions)
            wanted.extend(instructions[:ends])
            place = 0
            while place < ends:
                ready = rng.random() >= stall
                set_together(ctx, (dut.word, word), (dut.go, 1), (dut.o.ready, ready))
                assert ctx.get(dut.o.valid)
                if ready:
                    taken.append(ctx.get(dut.o.payload))
                    place += 1
                assert ctx.get(dut.done) == (ready and place == len(instructions))
                await ctx.tick()
            ctx.set(dut.go, 0)
            if ends < len(instructions):
                await ctx.tick()

    simulate(dut, testbench)
    assert taken == wanted
