"""Layers cut to strips that fit shared memory, and comparisons that notice, with a session that is the golden model."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.golden import Conv, PostProcessing, convolve
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.session.events import JobEnd
from tilewright.sim.workloads.convolver import Convolver
from tilewright.spec.conv import ConvError

PARAMS = CONV_UNIT_PRESETS["unit"].replace(smem=SmemParams(1024))
RNG = np.random.default_rng(12)
X = RNG.integers(0, 256, (1, 11, 14, 3), np.uint8)
K = RNG.integers(-128, 128, (5, 3, 3, 3), np.int8)
POST = PostProcessing(output="u8", bias=(1, 2, 3, 4, 5), scale=(0.01,) * 5)
LAYER = {"stride": (2, 2), "zeros": (127, 0), "post": POST}


class Session:
    """Runs jobs on golden; the byte at ``wrong`` is another one afterwards, and jobs end with ``code``."""

    def __init__(self, wrong=None, code=ConvError.NONE):
        self.params, self.wrong, self.code = SimpleNamespace(conv=PARAMS), wrong, code
        self.contents = np.zeros(PARAMS.smem.size_bytes, np.uint8)
        self.shared_memory = self
        self.jobs = []

    def write(self, address, contents):
        self.contents[address : address + len(contents)] = contents

    def read(self, address, count):
        return self.contents[address : address + count].copy()

    def run(self, jobs):
        Conv(self.contents, PARAMS.conv).execute(jobs[0])
        self.jobs += jobs
        if self.wrong is not None:
            self.contents[self.wrong] ^= 1
        end = JobEnd(100, self.code, 0, 0)
        return type("Run", (), {"jobs": [end], "queued": [0]})()


@pytest.mark.parametrize("merge", [1, 3])
def test_strips_make_the_layer(merge):
    session = Session()
    convolver = Convolver(session)
    results = convolver.convolve(X, K, "u8s8", merge=merge, case="some", **LAYER)
    # ⌈11 / 2⌉ points down and ⌈14 / 2⌉ across: one row of padding before and behind, one column behind.
    expected = convolve(X, K, "u8s8", padding=(1, 1, 0, 1), **LAYER)
    assert (results == expected).all()
    assert convolver.totals.parts == len(session.jobs) > 1
    assert convolver.totals.problems == []
    assert convolver.cases["some"].work == convolver.totals.work == 6 * 7 * 5 * 27


def test_what_is_wrong_is_noticed():
    convolver = Convolver(Session(wrong=5))
    convolver.convolve(X, K, "u8s8", merge=1, case="some", **LAYER)
    assert convolver.totals.problems[0].startswith("shared memory after 0 jobs: 1 of")
    convolver = Convolver(Session(code=ConvError.BARRIER))
    convolver.convolve(X, K, "u8s8", merge=1, case="some", **LAYER)
    assert convolver.totals.problems[0] == "BARRIER of a job after 0 jobs"


def test_a_line_that_does_not_fit_is_refused():
    wide = np.zeros((1, 3, 700, 3), np.uint8)
    with pytest.raises(ValueError, match=r"^a line of 700 pixels does not fit 1024 bytes$"):
        Convolver(Session()).convolve(wide, K, "u8s8", merge=1, case="some", **LAYER)
