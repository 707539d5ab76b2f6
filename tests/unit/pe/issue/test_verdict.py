"""The verdict on a memory operation, for all combinations of what can be wrong."""

from itertools import product
from types import SimpleNamespace

import pytest

from tilewright.golden.pe.checks import refusal
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, MmType, Operation
from tilewright.golden.spec.pe.segment import SegmentElement
from tilewright.hw.pe.issue.verdict import Verdict
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import elaborated, simulate

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
