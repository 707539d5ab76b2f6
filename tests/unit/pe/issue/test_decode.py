"""The decoder: verdicts on random words, near every limit, are those of the golden model."""

import random
from types import SimpleNamespace

import pytest

from tilewright.golden.pe.checks import decode, refusal
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, MmType, Operation
from tilewright.golden.spec.pe.segment import SegmentElement
from tilewright.hw.pe.issue.decode import Decoder
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


def random_word(rng, params):
    """An instruction of which each field is likely to be at a limit, and now and then no instruction at all."""
    operation = rng.choice([*Operation, Operation.MM, Operation.MM])  # few of these are right
    fmt = INSTRUCTIONS[operation]
    limits = (params.regs, params.uniform_regs, params.smem.size_bytes, params.regs - 4)
    word = 0
    for field in fmt.fields:
        largest = (1 << field.width) - 1
        small = rng.randrange(8)
        value = rng.choice([small, small, rng.choice(limits) - rng.randrange(4), rng.randrange(largest + 1)])
        word |= min(value, largest) << field.lsb
    word = word & ~0xFF | operation
    if operation == Operation.BAR_WAIT and rng.random() < 0.7:
        word &= ~(7 << fmt["imm"].lsb)
    if rng.random() < 0.1:
        word ^= 1 << rng.randrange(128)
    return word


def refusal_at_rank(word, params, rank):
    """The golden verdict if all uniform registers name a segment of ``rank`` that fits the instruction."""
    fields = INSTRUCTIONS[Operation.MM].unpack(word)
    narrow = fields["type"] > max(MmType) or MmType(fields["type"]).bytes == 1
    segment = SimpleNamespace(element=SegmentElement.S8 if narrow else SegmentElement.S16, rank=rank)
    pe = SimpleNamespace(
        sizes=params, uniform=[0] * params.uniform_regs, segments=[segment], smem=range(params.smem.size_bytes)
    )
    values = decode(word)
    return (PeError.OPCODE, 0) if values is None else refusal(values, pe)


def verdict(decoded, rank):
    """The same from what the hardware says."""
    mm = INSTRUCTIONS[Operation.MM].unpack(decoded.word)
    if decoded.code:
        return decoded.code, decoded.register
    if mm["opcode"] not in (Operation.MM, Operation.LD, Operation.ST):
        return PeError.NONE, 0
    if decoded.file_outside:
        return PeError.REGISTER, mm["ra"] if mm["opcode"] == Operation.MM else mm["rc"]
    if decoded.offsets_outside >> rank - 1 & 1:
        return PeError.REGISTER, mm["rf"]
    return PeError.NONE, 0


@pytest.mark.parametrize(
    ("preset", "mode"),
    [
        pytest.param(preset, mode, marks=[] if preset == "unit" or mode == "both" else pytest.mark.long)
        for preset in ("unit", "default", "ecp5")
        for mode in STALL_MODES
    ],
)
def test_verdicts(preset, mode):
    params = PE_PRESETS[preset]
    dut = elaborated(Decoder, params)
    rng = random.Random(f"decode {preset}")
    words = [random_word(rng, params) for _ in range(600)]
    cycles = {}

    async def source(ctx):
        cycles["in"] = await send(ctx, dut.i, words, idle=STALL_MODES[mode]["idle"], seed=1)

    async def sink(ctx):
        items, cycles["out"] = await receive(ctx, dut.o, len(words), stall=STALL_MODES[mode]["stall"], seed=2)
        found = set()
        for number, (word, decoded) in enumerate(zip(words, items, strict=True)):
            assert (decoded.word, decoded.number) == (word, number)
            for rank in range(1, 5):
                expected = refusal_at_rank(word, params, rank)
                if expected[0] != PeError.SEGMENT:  # mm with t1 at rank 1, which the decoder cannot know
                    assert verdict(decoded, rank) == expected, f"{word:#x} at rank {rank}"
                found.add((INSTRUCTIONS[Operation.MM].unpack(word)["opcode"], expected[0]))
        codes = {PeError.NONE, PeError.OPCODE, PeError.UNIFORM, PeError.REGISTER, PeError.BARRIER}
        codes |= {PeError.MERGE} if params.threads < 16 else set()
        codes |= set() if params.floats else {PeError.UNSUPPORTED}
        assert {code for _, code in found} >= codes
        assert {operation for operation, code in found if not code} == set(Operation)

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    if mode == "none":
        assert cycles["out"] == [cycle + 2 for cycle in cycles["in"]] == list(range(2, 2 * len(words) + 2, 2))


def test_accepted_instructions_are_counted():
    dut = elaborated(Decoder, PE_PRESETS["unit"])
    counted = 0

    async def testbench(ctx):
        nonlocal counted
        assert ctx.get(dut.idle)
        ctx.set(dut.i.valid, 1)
        for ready in (0, 0, 0, 1, 0, 1, 1, 0):
            ctx.set(dut.o.ready, ready)
            _, _, accepted = await ctx.tick().sample(dut.accepted)
            counted += accepted
            assert not ctx.get(dut.idle)
        assert ctx.get(dut.o.payload.number) == counted - 1

    simulate(dut, testbench)
    assert counted == 4
