"""Multiplies, loads and arithmetic at the same time: a program of all three takes little longer than the longest."""

import numpy as np

from support.selection import cases
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.results import record
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.session import Session
from tilewright.spec.pe import SEGMENT, SegmentElement

ROUNDS = 24
REGS = 128
PARAMS = PE_PRESETS["unit"].replace(regs=REGS, types=("i8",), units=("alu",), mm_in_flight=4)
MULTIPLY = ["mm8.t1 r64, ur0:rf0:0, r32", "mm8.t1 r80, ur0:rf0:0, r34"]
LOAD = ["ld r100, ur1:rf0:0, 4"]
COMPUTE = [f"mad r{4 + n}, r{36 + n}, r{37 + n}, r{4 + n}" for n in range(24)]


def program(*parts):
    """Rounds of all parts, spread over each other, after a beginning that sets every register."""
    lines = ["movu ur0, 0", "movu ur1, 1", "mov r0, tid", "mov r1, 0"]
    lines += [f"mov r{register}, {register}" for register in range(2, REGS)] + ["fence"]
    longest = max(parts, key=len)
    for _ in range(ROUNDS):
        for number, line in enumerate(longest):
            lines.append(line)
            lines += [part[0] for part in parts if part is not longest and number == 11]
            lines += [part[1] for part in parts if part is not longest and number == 23 and len(part) > 1]
    return assemble_program("\n".join([*lines, "halt"]))


def cycles(session, *parts):
    fields = {"element": SegmentElement.S8, "rank": 2, "size": [16, 64], "page_log2": [4, 6], "base": 0}
    words = fields | {"element": SegmentElement.S32, "size": [64, 16], "page_log2": [6, 4], "base": 4096}
    session.reset()
    session.shared_memory.write(0, np.arange(16384, dtype=np.uint32).astype(np.uint8))
    run = session.run(program=program(*parts), segments={0: SEGMENT.pack(**fields), 1: SEGMENT.pack(**words)})
    assert not run.faults
    return run.halts[-1] - run.issued[REGS + 3]


@cases("threads, most", [(4, 1.9)], [(16, 1.6)])
def test_three_at_once(threads, most):
    """Of 4 threads a load takes as long as arithmetic, and each part waits for the others more often."""
    with Session(params=CoreParams(pe=PARAMS.replace(threads=threads)), simulator="verilator") as session:
        alone = {
            "multiplies": cycles(session, MULTIPLY),
            "loads": cycles(session, LOAD),
            "arithmetic": cycles(session, COMPUTE),
        }
        together = cycles(session, COMPUTE, MULTIPLY, LOAD)
    print(alone, together)
    record(f"pe-overlap-{threads}", **alone, together=together)
    assert together < 0.7 * sum(alone.values())
    assert together < most * max(alone.values())
