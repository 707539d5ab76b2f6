"""Garbage programs in sequence on one machine write nothing outside the window, and all end."""

from collections import Counter

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Core, Memory, PeSizes, Windows
from tilewright.spec.core import ProgramError
from tilewright.verify.random.programs import DATA_WINDOW, GLOBAL_BYTES, PROGRAM_AT, PROGRAM_WINDOW, garbage_programs

PROGRAMS = 5000
SMEM_BYTES = 4096
PARAMS = CONV_PRESETS["unit"]
#: Programs that run on one machine.
TOGETHER = 50
#: Words after which a program is stopped.
LIMIT = 200
SIZES = PeSizes(threads=4, regs=32, segments=4, pages=8)


def machine(number):
    return Core(
        Memory(GLOBAL_BYTES), np.zeros(SMEM_BYTES, np.uint8), pe=SIZES, conv=PARAMS if number % 2 else None,
        windows=Windows(DATA_WINDOW), program_window=PROGRAM_WINDOW, watchdog=True,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_garbage(seed):
    codes, core = Counter(), None
    first, last = DATA_WINDOW
    for number, program in enumerate(garbage_programs(seed, PARAMS, SMEM_BYTES, PROGRAMS)):
        core = core if number % TOGETHER else machine(number // TOGETHER)
        core.gmem.data[:] = program.gmem
        record = core.run(PROGRAM_AT, program.words, limit=LIMIT)
        changed = core.gmem.data != program.gmem
        assert not changed[:first].any(), f"seed {seed}, program {number}"
        assert not changed[last + 1 :].any(), f"seed {seed}, program {number}"
        codes[record.code if record else ProgramError.NONE] += 1
    assert set(codes) == set(ProgramError)
    assert codes[ProgramError.NONE] > PROGRAMS // 20
