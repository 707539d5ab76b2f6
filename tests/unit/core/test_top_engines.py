"""A core of one engine: barriers, and shared memory in the register window."""

import numpy as np

from tilewright.golden import Conv
from tilewright.golden.conv.machine import job_word
from tilewright.hw.core import core_regions
from tilewright.sim.session import Session
from tilewright.spec import BARRIER
from tilewright.spec.conv import JOB

_AT = 8192  # of the barrier


def test_a_convolution_engine_arrives_at_a_barrier():
    """A processor waits for the end of a job at a barrier, and reads its results over the window."""
    word = job_word(
        operation="convolution", type="u8s8", output="raw", x=0, k=256, y=512, channels=8, width=4, height=2,
        out_channels=2, out_width=4, out_height=2, granularity=3, x_pitch=(8, 32, 64), k_pitch=8, y_pitch=(8, 32, 64),
        signal=1, barrier=_AT, tag=9,
    )  # fmt: skip
    with Session("unit", ["conv"]) as session:
        smem = np.random.default_rng(4).integers(0, 256, session.params.smem.size_bytes, np.uint8)
        smem[_AT : _AT + BARRIER.bytes] = 0
        session.run(preload=smem)
        regions = core_regions(session.params)
        first = regions["smem"].base + JOB.unpack(word)["y"]
        run = session.run(
            jobs=[word],
            barriers=[("init", _AT, 1), ("try_wait", _AT, 0, True)],
            registers=[(first + 4 * index,) for index in range(16)],
            after={"jobs": [], "registers": ["barriers"]},
        )
        golden = smem.copy()
        golden[_AT : _AT + BARRIER.bytes] = np.frombuffer(
            BARRIER.pack(expected=1, pending=1).to_bytes(8, "little"), "u1"
        )
        assert Conv(golden, session.params.conv.conv).execute(word)
        assert [end.tag for end in run.jobs] == [9]
        assert [answer.done for answer in run.barriers] == [False, True]
        assert [answer.data for answer in run.registers] == golden[512:576].view("<u4").tolist()
