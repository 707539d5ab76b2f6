"""What the first bits of a job say, against the golden model."""

import random

import pytest
from amaranth.hdl import Module, Signal

from tilewright.golden.conv.job import barriers_of, check_job, parts_of, result_bytes
from tilewright.hw.conv.job.rules import JobKind, JobRules
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.lib.layouts import packed_layout
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, JOB, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import MM_FAMILIES, MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.random.conv_jobs import garbage_jobs, random_jobs

_FLAGS = (
    "wide",
    "floating",
    "brain",
    "convolution",
    "depthwise",
    "maximum",
    "weights",
    "quantised",
    "bias",
    "table",
    "add",
    "early",
    "result_log2",
)


def outputs(operation, kind):
    if operation == ConvOperation.MAX_POOL:
        return [ConvOutput.ELEMENT]
    return [output for output in ConvOutput if output != ConvOutput.ELEMENT
            and not (output.quantised if kind.is_float else output.half)]  # fmt: skip


@pytest.mark.parametrize("types", [("i8",), ("i16",), ("i8", "i16"), ("i8", "f16"), ("bf16",)])
def test_all(types):
    m, job = Module(), Signal(packed_layout(JOB))
    kind = JobKind(ConvUnitParams(CONV_PRESETS["unit"].replace(types=types)), job)
    flags = {name: Signal(2, name=name) for name in _FLAGS}
    m.d.comb += [flag.eq(getattr(kind, name)) for name, flag in flags.items()]
    words = [
        JOB.pack(type=number, operation=operation, output=output, bias=bits & 1, add=bits >> 1, signal=bits & 1,
                 early=bits >> 1, channels=1, width=1, height=1, batch=1, out_channels=1, out_width=1, out_height=1,
                 kernel=(1, 1))
        for number in MmType if number.family in types
        for operation in ConvOperation for output in outputs(operation, number) for bits in range(4)
    ]  # fmt: skip

    async def bench(ctx):
        for word in words:
            ctx.set(job.as_value(), word)
            fields = JOB.unpack(word)
            operation, parts = ConvOperation(fields["operation"]), parts_of(fields)
            assert {name: ctx.get(flag) for name, flag in flags.items()} == {
                "wide": MmType(fields["type"]).bytes == 2,
                "floating": MmType(fields["type"]).is_float,
                "brain": fields["type"] == MmType.BF16,
                "convolution": operation == ConvOperation.CONVOLUTION,
                "depthwise": operation == ConvOperation.DEPTHWISE,
                "maximum": operation == ConvOperation.MAX_POOL,
                "weights": "k" in parts,
                "quantised": ConvOutput(fields["output"]).quantised,
                "bias": fields["bias"] and operation != ConvOperation.MAX_POOL,
                "table": "table" in parts,
                "add": "addend" in parts,
                "early": len(barriers_of(fields)) == 2,
                "result_log2": result_bytes(fields).bit_length() - 1,
            }

    simulate(m, bench)


SEED = 37
BYTES = 4096
PARAMS = ConvUnitParams(CONV_PRESETS["default"], SmemParams(BYTES))
#: What arithmetic finds, in the order of rules; the number of its rule.
FOUND = {("pitch",): 23}
FOUND |= {("outside", name): 24 + n for n, name in enumerate(("barrier", "x", "k", "table", "y", "addend"))}
FOUND |= {("overlap", name): 30 + n for n, name in enumerate(("x", "k", "table", "addend"))}
CODES = {"pitch": ConvError.PITCH, "outside": ConvError.RANGE, "overlap": ConvError.OVERLAP}


async def look(ctx, dut, word, found):
    """Code, field and the cycles until they came."""
    ctx.set(dut.job.as_value(), word)
    ctx.set(dut.found, found)
    ctx.set(dut.start, 1)
    await ctx.tick()
    ctx.set(dut.start, 0)
    ctx.set(dut.looking, 1)
    cycles = 0
    while not ctx.get(dut.done):
        await ctx.tick()
        cycles += 1
    ctx.set(dut.looking, 0)
    return ctx.get(dut.code), ctx.get(dut.field), cycles


def test_found():
    """Each finding alone, and with all that come behind it."""
    dut = elaborated(JobRules, PARAMS)
    good = [job.word for job in random_jobs(SEED, PARAMS.conv, 5, smem_bytes=BYTES)]

    async def bench(ctx):
        for word in good:
            assert await look(ctx, dut, word, {}) == (0, 0, dut.RULES)
        for first, number in FOUND.items():
            for names in ([first], [name for name, behind in FOUND.items() if behind >= number]):
                found = {"outside": {}, "overlap": {}}
                for name in names:
                    (found[name[0]] if name[1:] else found)[name[-1]] = 1
                field = JOB.index(first[-1] if first[1:] else "y_pitch")
                assert await look(ctx, dut, good[0], found) == (CODES[first[0]], field, number)

    simulate(dut, bench)


@pytest.mark.parametrize("types", [("i8", "i16"), MM_FAMILIES, ("f16",)], ids=",".join)
def test_fields(types):
    """Garbage: the rules that need no sums."""
    params = PARAMS.replace(conv=PARAMS.conv.replace(types=types))
    dut, rng = elaborated(JobRules, params), random.Random(SEED)

    async def bench(ctx):
        for word in garbage_jobs(SEED, params.conv, 200, smem_bytes=BYTES):
            fields = JOB.unpack(word)
            refused = check_job(word, params.conv, BYTES)
            code = refused.code if refused else ConvError.NONE
            found = {"apart": fields["x_pitch"][0] != fields["channels"] * (1 + (fields["type"] >= 4))}
            result = await look(ctx, dut, word, found | {"pitch": rng.getrandbits(1)})
            if ConvError.NONE < code < ConvError.PITCH:
                assert result[:2] == (code, JOB.index(refused.field)), fields
            else:
                assert result[0] in (ConvError.PITCH, ConvError.NONE), fields

    simulate(dut, bench, deadline=15_000)


@pytest.mark.parametrize("after", [1, 3, 20])
def test_looking_holds(after):
    """Without ``looking`` it stays where it is."""
    dut = elaborated(JobRules, PARAMS)
    (good,) = random_jobs(SEED, PARAMS.conv, 1, smem_bytes=BYTES)

    async def bench(ctx):
        ctx.set(dut.job.as_value(), good.word)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.looking, 1)
        await ctx.tick().repeat(dut.RULES - after)
        ctx.set(dut.looking, 0)
        await ctx.tick().repeat(5)
        ctx.set(dut.looking, 1)
        await ctx.tick().repeat(after)
        assert ctx.get(dut.done) and not ctx.get(dut.code)

    simulate(dut, bench)
