"""The check of jobs against the golden model: legal jobs, garbage, every rule, the ends of spans, stalls, resets."""

import random
from collections import Counter

import pytest
from amaranth.hdl import ResetInserter, Signal

from tilewright.golden.conv.checks import check_job
from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.job.check import JobChecker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream
from tilewright.sim.random.conv_jobs import garbage_jobs, random_jobs

SEED = 23
BYTES = 4096
PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(BYTES)) for name in ("unit", "default")}


def expected(word, params):
    refused = check_job(word, params.conv, params.smem.size_bytes)
    return (refused.code, JOB.index(refused.field)) if refused else (ConvError.NONE, 0)


def check(words, params, *, mode="none"):
    """Runs words; latencies of those that did not wait."""
    dut, stalls = elaborated(JobChecker, params), STALL_MODES[mode]

    async def source(ctx):
        await send(ctx, dut.i, words, idle=stalls["idle"])

    async def sink(ctx):
        payloads, _ = await receive(ctx, dut.o, len(words), stall=stalls["stall"])
        for word, payload in zip(words, payloads, strict=True):
            assert payload.word == word
            found = ConvError(payload.code), payload.field
            assert found == expected(word, params), JOB.unpack(word)

    simulate(dut, source, sink, background=[watch_stream(dut.o, "o")], deadline=len(words) * 2 * dut.most_cycles)


@pytest.mark.parametrize("name", PARAMS)
def test_garbage(name):
    params = PARAMS[name]
    words = list(garbage_jobs(SEED, params.conv, 300, smem_bytes=BYTES))
    print(Counter(ConvError(expected(word, params)[0]).name for word in words))
    check(words, params)
