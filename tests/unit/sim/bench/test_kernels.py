"""The benchmark's kernels: each preset has those that it can run, and they fit its memory."""

import pytest

from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.bench.kernels import cases


@pytest.mark.parametrize(("preset", "count"), [("default", 17), ("ecp5", 8), ("lean", 0), ("unit", 0)])
def test_cases(preset, count):
    names = [name for name, _, program in cases(PE_PRESETS[preset]) if program.instructions()["return"] == 1]
    assert len(set(names)) == len(names) == count


def test_targets_are_above_the_instructions():
    for name, target, program in cases(PE_PRESETS["default"]):
        assert target is None or sum(program.instructions().values()) / program.elements < target, name
