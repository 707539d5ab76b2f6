"""The kind of a job against golden, and the order of its rules; tests of the check show what each rule refuses."""

import pytest
from amaranth.hdl import Module, Signal

from support.conv import conv_unit
from support.streams import pulse
from tilewright.golden.conv.job import barriers_of, parts_of, result_bytes
from tilewright.hw.conv.job.rules import JobKind, JobRules
from tilewright.hw.lib.layouts import packed_layout
from tilewright.spec.conv import JOB, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.random.conv_jobs import random_jobs

_FLAGS = ("wide", "floating", "brain", "convolution", "depthwise", "maximum", "weights", "quantised", "bias", "table",
          "add", "function", "early", "result_log2")  # fmt: skip


def outputs(operation, kind):
    if operation == ConvOperation.MAX_POOL:
        return [ConvOutput.ELEMENT]
    return [output for output in ConvOutput if output != ConvOutput.ELEMENT
            and not (output.quantised if kind.is_float else output.half)]  # fmt: skip


@pytest.mark.parametrize("types", [("i8",), ("i16",), ("i8", "i16"), ("i8", "f16"), ("bf16",)])
def test_all(types):
    m, job = Module(), Signal(packed_layout(JOB))
    kind = JobKind(conv_unit(types=types), job)
    flags = {name: Signal(2, name=name) for name in _FLAGS}
    m.d.comb += [flag.eq(getattr(kind, name)) for name, flag in flags.items()]
    words = [
        JOB.pack(type=number, operation=operation, output=output, bias=bits & 1, add=bits >> 1, signal=bits & 1,
                 early=bits >> 1, function=bits >> 1,
                 channels=1, width=1, height=1, batch=1, out_channels=1, out_width=1, out_height=1,
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
                "function": "function_table" in parts,
                "early": len(barriers_of(fields)) == 2,
                "result_log2": result_bytes(fields).bit_length() - 1,
            }

    simulate(m, bench)


SEED = 37
BYTES = 4096
PARAMS = conv_unit("default", BYTES)
#: What arithmetic finds, in the order of rules; the number of its rule.
FOUND = {("pitch",): 25}
FOUND |= {("outside", name): 26 + n for n, name in enumerate(("barrier", "x", "k", "table", "y", "addend"))}
FOUND |= {("outside", "function_table"): FOUND["outside", "addend"]}  # one rule for both
FOUND |= {("overlap", name): 32 + n for n, name in enumerate(("x", "k", "table", "addend"))}
FOUND |= {("overlap", "function_table"): FOUND["overlap", "addend"]}
CODES = {"pitch": ConvError.PITCH, "outside": ConvError.RANGE, "overlap": ConvError.OVERLAP}


async def look(ctx, dut, word, found):
    """Code, field and the cycles until they came."""
    ctx.set(dut.job.as_value(), word)
    ctx.set(dut.errors, found)
    await pulse(ctx, dut.start)
    ctx.set(dut.advance, 1)
    cycles = 0
    while not ctx.get(dut.done):
        await ctx.tick()
        cycles += 1
    ctx.set(dut.advance, 0)
    return ctx.get(dut.code), ctx.get(dut.field), cycles


def test_found():
    """Each finding alone, and with all that come behind it; of two of one rule the first one counts."""
    dut = elaborated(JobRules, PARAMS)
    good = [job.word for job in random_jobs(SEED, PARAMS.conv, 5, smem_bytes=BYTES)]

    async def bench(ctx):
        for word in good:
            assert await look(ctx, dut, word, {}) == (0, 0, dut.rules)
        for first, number in FOUND.items():
            for names in ([first], list(FOUND)[list(FOUND).index(first) :]):
                found = {"outside": {}, "overlap": {}}
                for name in names:
                    (found[name[0]] if name[1:] else found)[name[-1]] = 1
                field = JOB.index(first[-1] if first[1:] else "y_pitch")
                assert await look(ctx, dut, good[0], found) == (CODES[first[0]], field, number)

    simulate(dut, bench)
