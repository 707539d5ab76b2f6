"""The decoder: verdicts on random words, near every limit, are those of the golden model."""

import random
from itertools import product
from types import SimpleNamespace

import pytest

from tilewright.golden.pe.machine import decode, refusal
from tilewright.hw.pe.issue.decode import Decoder, MovedRegisters, UniformRegisters, Verdict
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import INSTRUCTIONS, MmType, Operation, PeError, SegmentElement
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, set_together, watch_stream


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


PARAMS = PE_PRESETS["unit"]
ELEMENTS = (SegmentElement.U8, SegmentElement.BF16, SegmentElement.F32)


@pytest.mark.parametrize("operation", [Operation.MM, Operation.LD, Operation.ST])
def test_combinations(operation):
    dut = elaborated(Verdict, PARAMS)
    fmt = INSTRUCTIONS[operation]
    found = set()

    async def testbench(ctx):
        flags = product((0, 1), repeat=3)
        for (is_set, exists, good), element, rank, transpose, wide, first, rf in product(
            flags, ELEMENTS, range(1, 5), (0, 1), (0, 1), (5, PARAMS.regs - 1), range(PARAMS.regs - 5, PARAMS.regs + 1)
        ):
            fields = {"transpose": transpose, "type": MmType.F16 if wide else MmType.S8U8, "ra": first, "rc": 3}
            fields |= {"rd": first, "rs": first, "n": 2, "rf": rf, "ur": 7}
            word = fmt.pack(opcode=operation, **{f.name: fields[f.name] for f in fmt.fields if f.name in fields})
            offsets_outside = sum(1 << r - 1 for r in range(1, 5) if rf + r > PARAMS.regs)
            decoded = {"word": word, "file_outside": first + 2 > PARAMS.regs, "offsets_outside": offsets_outside}
            entry = {"good": good, "element_log2": element & 3, "rank": rank - 1}
            set_together(ctx, (dut.decoded, decoded), (dut.is_set, is_set), (dut.exists, exists), (dut.segment, entry))
            number = (0 if exists else PARAMS.segments) if is_set else None
            segment = SimpleNamespace(element=element, rank=rank) if good else None
            pe = SimpleNamespace(sizes=PARAMS, uniform=[number] * 8, segments=[segment], smem=b"")
            verdict = ctx.get(dut.o)
            expected = refusal(fmt.unpack(word), pe)
            assert (verdict.code, verdict.register) == expected
            found.add(expected)

    simulate(dut, testbench)
    names = {PeError.NONE, PeError.UNIFORM, PeError.SEGMENT, PeError.REGISTER}
    assert {code for code, _ in found} == names


TMAU_PRESETS = {"ragged": PE_PRESETS["unit"].replace(threads=7), "full": PE_PRESETS["full"]}


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_registers(preset):
    params = TMAU_PRESETS[preset]
    dut = elaborated(MovedRegisters, params)
    rng = random.Random(f"moved {preset}")

    def instruction():
        operation = rng.choice([Operation.MM, Operation.LD, Operation.ST, Operation.MOV, Operation.SETP])
        name = {Operation.MM: "rc", Operation.ST: "rs", Operation.SETP: "rs"}.get(operation, "rd")
        first = rng.choice([rng.randrange(params.regs), params.regs - 1])
        if operation == Operation.MM:
            first = rng.choice([first, params.regs, rng.getrandbits(16)])
            ka = rng.randrange(1, 5)
            columns = range(0, params.threads, ka)
            moved = [min(first + column // ka, params.regs - 1) for column in columns]
            return INSTRUCTIONS[operation].pack(opcode=operation, rc=first, ka=ka), moved
        fields, count = {name: first}, 1
        if operation in (Operation.LD, Operation.ST):
            fields["n"] = count = rng.randrange(1, params.regs - first + 1)
        return INSTRUCTIONS[operation].pack(opcode=operation, **fields), range(first, first + count)

    async def testbench(ctx):
        for _ in range(500):
            word, moved = instruction()
            ctx.set(dut.word, word)
            await ctx.tick()
            ctx.set(dut.word, rng.getrandbits(128))
            found = ctx.get(dut.o)
            assert (found.first, found.last) == (min(moved), max(moved))

    simulate(dut, testbench)


@pytest.mark.parametrize("registers", [8, 16])
def test_last_write_is_read(registers):
    params = PE_PRESETS["unit"].replace(uniform_regs=registers)
    dut = elaborated(UniformRegisters, params)
    rng = random.Random(registers)
    model = [None] * registers

    async def testbench(ctx):
        for _ in range(400):
            number = rng.randrange(registers)
            ctx.set(dut.number, number)
            assert ctx.get(dut.is_set) == (model[number] is not None)
            if model[number] is not None:
                assert ctx.get(dut.exists) == (model[number] < params.segments)
                if model[number] < params.segments:
                    assert ctx.get(dut.segment) == model[number]
            value = rng.choice([rng.randrange(params.segments), params.segments, 1 << 31, rng.getrandbits(32)])
            write = rng.random() < 0.2
            ctx.set(dut.value, value)
            ctx.set(dut.write, write)
            await ctx.tick()
            ctx.set(dut.write, 0)
            if write:
                model[number] = value

    simulate(dut, testbench)
