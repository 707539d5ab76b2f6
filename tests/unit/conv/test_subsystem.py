"""The engine with its shared memory: a job whose end a processor waits for at a barrier, read over the window."""

import numpy as np

from tilewright.golden import Conv
from tilewright.golden.conv.machine import job_word
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.subsystem import ConvSubsystem
from tilewright.sim.session import Session
from tilewright.spec import BARRIER
from tilewright.spec.conv import JOB

AT = 8192  # of the barrier


def test_barrier_and_window():
    word = job_word(
        operation="convolution", type="u8s8", output="raw", x=0, k=256, y=512, channels=8, width=4, height=2,
        out_channels=2, out_width=4, out_height=2, granularity=3, x_pitch=(8, 32, 64), k_pitch=8, y_pitch=(8, 32, 64),
        signal=1, barrier=AT, tag=9,
    )  # fmt: skip
    with Session("unit", ["conv"]) as session:
        smem = np.random.default_rng(4).integers(0, 256, CONV_UNIT_PRESETS["unit"].smem.size_bytes, np.uint8)
        smem[AT : AT + BARRIER.bytes] = 0
        session.run(shared=smem)
        regions = ConvSubsystem(session.params).regions
        first = regions["smem"].base + JOB.unpack(word)["y"]
        run = session.run(
            [word],
            barriers=[("init", AT, 1), ("try_wait", AT, 0, True)],
            registers=[(first + 4 * index,) for index in range(16)],
            after={"jobs": [], "registers": ["barriers"]},
        )
        golden = smem.copy()
        golden[AT : AT + BARRIER.bytes] = np.frombuffer(BARRIER.pack(expected=1, pending=1).to_bytes(8, "little"), "u1")
        assert Conv(golden, session.params.conv).execute(word)
        assert [end.tag for end in run.jobs] == [9]
        assert [answer.done for answer in run.barriers] == [False, True]
        assert [answer.data for answer in run.registers] == golden[512:576].view("<u4").tolist()
