"""What the first bits of a job say, against the golden model."""

import pytest
from amaranth.hdl import Module, Signal

from tilewright.golden.conv.placement import barriers_of, parts_of, result_bytes
from tilewright.golden.spec.conv.job import JOB, ConvOperation, ConvOutput
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.job.kind import JobKind
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.lib.formats import packed_layout
from tilewright.sim.pysim.simulate import simulate

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
