"""The programs of the benchmark of a core: the hardware of every preset has what they need."""

import numpy as np
import pytest

from tilewright.golden import ImplicitGemm
from tilewright.golden.tmau.machine import is_unsupported
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.bench import core
from tilewright.spec import COMMAND, DESCRIPTOR, FORMATS
from tilewright.spec.core import PROGRAM_WORDS, Kind
from tilewright.spec.tmau import TENSOR_OPCODES

_KIND = PROGRAM_WORDS[Kind.END]["kind"].lsb


def refused(program, features):
    """Whether hardware with these features refuses a command of a program."""
    for word in program.words:
        if word >> _KIND != Kind.TMAU:
            continue
        command = word & (1 << _KIND) - 1
        fields = FORMATS[COMMAND.unpack(command)["opcode"]].unpack(command)
        place = fields["descriptor"] if fields["opcode"] in TENSOR_OPCODES else None
        tmap = None if place is None else program.memory[place : place + DESCRIPTOR.bytes].tobytes()
        if is_unsupported(fields, tmap, features):
            return True
    return False


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_products_are_measured_where_the_features_are(preset):
    x, k = np.ones((1, 8, 8, 16), np.int8), np.ones((16, 3, 3, 16), np.int8)
    products = ImplicitGemm(x, k, "s8s8", padding=(1,) * 4, sizes=CORE_PRESETS[preset].pe, smem_bytes=32 * 1024)
    features = TMAU_PRESETS[preset].features
    assert refused(products, features) == (not set(core.FEATURES) <= set(features)) == (preset == "lean")
    assert not refused(products, core.FEATURES)


@pytest.mark.long
def test_without_im2col_jobs_alone_are_measured():
    lines = [line for line, _ in core.measure("lean")]
    assert lines and all(line.name.endswith(", convolution engine") for line in lines)
