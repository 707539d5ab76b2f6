"""Errors of instruction words near every limit, as in the golden model; moved registers; uniform registers."""

import random
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from support.selection import grid
from support.streams import transact
from tilewright.golden.pe.checks import refusal
from tilewright.hw.pe.issue.decode import DecodedLayout, Decoder, memory_error, moved_registers
from tilewright.hw.pe.layouts import SegmentEntryLayout
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, MmType, Operation, PeError, SegmentElement
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together

UNIT = PE_PRESETS["unit"]
#: Operations that may be at a wrong place.
CONTROLS = {Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END, Operation.LOAD}


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
    if operation in (Operation.ARITH, Operation.LOOP) and rng.random() < 0.8:
        word = without_unused(rng, fmt.unpack(word), fmt)
    if operation == Operation.BAR_WAIT and rng.random() < 0.7:
        word &= ~(7 << fmt["imm"].lsb)
    if rng.random() < 0.1:
        word ^= 1 << rng.randrange(128)
    return word


def without_unused(rng, fields, fmt):
    """An ARITH or LOOP with these fields, but a function that exists, and zeros where it uses no field."""
    fields["b"] = rng.choice([*Operand])
    unused = {"imm"} if fields["b"] != Operand.IMMEDIATE else {"rb"}
    if fields["opcode"] == Operation.ARITH:
        fields["function"] = rng.choice([*Function])
        info = FUNCTIONS[fields["function"]]
        unused |= {f"r{name}" for name in "abc" if name not in info.operands}
        unused |= {"b", "imm"} if "b" not in info.operands else set()
        unused |= set() if info.selects else {"ps"}
        fields["part"] %= info.parts
    return fmt.pack(**fields | dict.fromkeys(unused, 0))


def refusal_at_rank(word, params, rank, misplaced):
    """The golden error if all uniform registers name a segment of ``rank`` that fits the instruction.

    ``misplaced`` is the index in instruction memory if the error CONTROL was found before, or None.
    """
    fields = INSTRUCTIONS[Operation.MM].unpack(word)
    narrow = fields["type"] > max(MmType) or MmType(fields["type"]).bytes == 1
    segment = SimpleNamespace(element=SegmentElement.S8 if narrow else SegmentElement.S16, rank=rank)
    pe = SimpleNamespace(
        sizes=params, uniform=[0] * params.uniform_regs, segments=[segment], smem=range(params.smem.size_bytes),
        kernels=SimpleNamespace(
            refusal=lambda *_: (PeError.NONE, 0) if misplaced is None else (PeError.CONTROL, misplaced)
        ),
    )  # fmt: skip
    return refusal(word, pe)


def error_of(decoded, rank):
    """The same from the outputs of the hardware."""
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


class Passing(Elaboratable):
    """The decoder, whose instructions are accepted at once if they can be, as by Router and Issue."""

    def __init__(self, params):
        self.decoder = Decoder(params)
        self.i, self.o = self.decoder.i, self.decoder.o

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = self.decoder
        decoded = self.o.payload
        passes = decoded.arithmetic | decoded.done | decoded.job
        m.d.comb += self.decoder.passes.eq(self.o.valid & self.o.ready & passes)
        return m


def expected_distances(decoded, params):
    """Cycles from each instruction to the next one, without pauses.

    With arithmetic it is one, unless the instruction before is at the output then, and is not accepted at once.
    """
    distances = []
    for number in range(len(decoded) - 1):
        before = decoded[number - 1]
        waits = distances and distances[-1] == 1 and not (before.arithmetic or before.done or before.job)
        distances.append(1 if params.units and not waits else 2)
    return distances


@grid(
    lambda preset, mode: preset == "unit" or mode == "both",
    preset=["unit", "default", "ecp5", "lean"],
    mode=STALL_MODES,
)
def test_errors(preset, mode):
    params, met = PE_PRESETS[preset], set()
    rng = random.Random(f"decode {preset}")
    words = [random_word(rng, params) for _ in range(1500)]
    fetched = [
        {"word": word, "misplaced": word & 0xFF in CONTROLS and rng.random() < 0.3, "index": rng.getrandbits(16)}
        for word in words
    ]
    payloads, cycles = transact(elaborated(Passing, params), {"i": fetched}, {"o": len(words)}, mode)
    for number, (item, decoded) in enumerate(zip(fetched, payloads["o"], strict=True)):
        word, misplaced = item["word"], item["index"] if item["misplaced"] else None
        assert (decoded.word, decoded.number) == (word, number)
        for rank in range(1, 5):
            expected = refusal_at_rank(word, params, rank, misplaced)
            if expected[0] != PeError.SEGMENT:  # mm with t1 at rank 1, which the decoder cannot know
                assert error_of(decoded, rank) == expected, f"{word:#x} at rank {rank}"
            met.add((INSTRUCTIONS[Operation.MM].unpack(word)["opcode"], expected[0]))
    codes = {PeError.NONE, PeError.OPCODE, PeError.UNIFORM, PeError.REGISTER, PeError.BARRIER}
    codes |= {PeError.CONTROL} if params.units else set()
    codes |= {PeError.MERGE} if params.threads < 16 else set()
    codes |= set() if params.floats else {PeError.UNSUPPORTED}
    assert {code for _, code in met} >= codes
    built = {operation for operation in Operation if params.units or operation not in {*CONTROLS, Operation.ARITH}}
    assert {operation for operation, code in met if not code} == built
    if mode == "none":
        assert cycles["o"] == [cycle + 2 for cycle in cycles["i"]]
        assert [later - earlier for earlier, later in pairwise(cycles["i"])] == expected_distances(
            payloads["o"], params
        )


@pytest.mark.parametrize("operation", [Operation.MM, Operation.LD, Operation.ST])
def test_every_combination_of_errors_of_a_memory_operation(operation):
    m, fmt = Module(), INSTRUCTIONS[operation]
    decoded, entry = Signal(DecodedLayout()), Signal(SegmentEntryLayout(UNIT))
    is_set, exists = Signal(), Signal()
    error = memory_error(m, decoded, is_set=is_set, exists=exists, segment=entry)
    met = set()

    async def testbench(ctx):
        flags, elements = product((0, 1), repeat=3), (SegmentElement.U8, SegmentElement.BF16, SegmentElement.F32)
        limits = (5, UNIT.regs - 1), range(UNIT.regs - 5, UNIT.regs + 1)
        for (set_, there, good), element, rank, transpose, wide, first, rf in product(
            flags, elements, range(1, 5), (0, 1), (0, 1), *limits
        ):
            fields = {"transpose": transpose, "type": MmType.F16 if wide else MmType.S8U8, "ra": first, "rc": 3}
            fields |= {"rd": first, "rs": first, "n": 2, "rf": rf, "ur": 7}
            word = fmt.pack(opcode=operation, **{f.name: fields[f.name] for f in fmt.fields if f.name in fields})
            offsets_outside = sum(1 << r - 1 for r in range(1, 5) if rf + r > UNIT.regs)
            checked = {"word": word, "file_outside": first + 2 > UNIT.regs, "offsets_outside": offsets_outside}
            values = {"good": good, "element_log2": element & 3, "rank": rank - 1}
            set_together(ctx, (decoded, checked), (is_set, set_), (exists, there), (entry, values))
            number = (0 if there else UNIT.segments) if set_ else None
            segment = SimpleNamespace(element=element, rank=rank) if good else None
            pe = SimpleNamespace(sizes=UNIT, uniform=[number] * 8, segments=[segment], smem=b"")
            expected = refusal(word, pe)
            assert (ctx.get(error.code), ctx.get(error.register)) == expected
            met.add(expected[0])

    simulate(m, testbench)
    assert met == {PeError.NONE, PeError.UNIFORM, PeError.SEGMENT, PeError.REGISTER}


@pytest.mark.parametrize("params", [UNIT.replace(threads=7), PE_PRESETS["full"]], ids=["ragged", "full"])
def test_moved_registers(params):
    """First and last, against a list."""
    m, word = Module(), Signal(128)
    moved = moved_registers(m, params, word)
    rng = random.Random(f"moved {params.threads}")

    def instruction():
        operation = rng.choice([Operation.MM, Operation.LD, Operation.ST, Operation.MOV, Operation.SETP])
        name = {Operation.MM: "rc", Operation.ST: "rs", Operation.SETP: "rs"}.get(operation, "rd")
        first = rng.choice([rng.randrange(params.regs), params.regs - 1])
        if operation == Operation.MM:
            first = rng.choice([first, params.regs, rng.getrandbits(16)])
            ka = rng.randrange(1, 5)
            columns = range(0, params.threads, ka)
            registers = [min(first + column // ka, params.regs - 1) for column in columns]
            return INSTRUCTIONS[operation].pack(opcode=operation, rc=first, ka=ka), registers
        fields, count = {name: first}, 1
        if operation in (Operation.LD, Operation.ST):
            fields["n"] = count = rng.randrange(1, params.regs - first + 1)
        return INSTRUCTIONS[operation].pack(opcode=operation, **fields), range(first, first + count)

    async def testbench(ctx):
        for _ in range(500):
            value, registers = instruction()
            ctx.set(word, value)
            await ctx.tick()
            ctx.set(word, rng.getrandbits(128))
            assert (ctx.get(moved.first), ctx.get(moved.last)) == (min(registers), max(registers))

    simulate(m, testbench)
