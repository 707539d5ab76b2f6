"""All blocks on a shared memory: whole programs against the golden machine, with pauses at every port."""

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import gemm_program
from tilewright.golden.spec import BANKS, CHUNK_BYTES
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.pe.datapath import PeDatapath
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem.layouts import CHUNK_BITS
from tilewright.hw.smem.top import SharedMemory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send

SEED = 4
PARAMS = PE_PRESETS["unit"]


class OnSharedMemory(Elaboratable):
    """A core beside the memory that its program lies in; nothing else uses the barriers."""

    def __init__(self):
        self.core = PeDatapath(PARAMS)
        self.smem = SharedMemory(PARAMS.smem, stores=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.smem = smem = self.smem
        port = core.smem
        for source, sink in ((port.reads, smem.reads), (smem.read_data, port.read_data), (port.scatter, smem.scatter)):
            m.d.comb += [sink.p.eq(source.p), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
        m.d.comb += port.scatter_idle.eq(smem.scatter_idle)
        return m


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("both", MmType.BF16),
        *(pytest.param(mode, MmType.S8U8, marks=pytest.mark.long) for mode in ("none", "idle", "stall")),
        pytest.param("none", MmType.BF16, marks=pytest.mark.long),
    ],
)
def test_a_product(mode, kind):
    rng = np.random.default_rng(SEED)
    a, b = (raw_elements(rng, shape, kind) for shape in ((5, 19), (19, 6)))
    program = gemm_program(a, b, kind, sizes=PARAMS, size_bytes=PARAMS.smem.size_bytes, transpose=1)
    golden = program.pe()
    golden.run(program.words)
    dut, stalls, reports = elaborated(OnSharedMemory), STALL_MODES[mode], []
    core, memories = dut.core, dut.smem.banks.memories

    async def processor(ctx):
        for row, line in enumerate(program.placement.smem.reshape(-1, BANKS, CHUNK_BYTES)):
            for memory, chunk in zip(memories, line, strict=True):
                ctx.set(memory.data[row], int.from_bytes(chunk.tobytes(), "little"))
        segments = [{"index": n, "word": s.pack()} for n, s in enumerate(program.placement.segments)]
        pages = [{"index": n, "word": word} for n, word in enumerate(program.placement.entries)]
        await send(ctx, core.segments, segments)
        await send(ctx, core.pages, pages)
        await send(ctx, core.instructions, program.words, idle=stalls["idle"], seed=SEED)
        while not ctx.get(core.idle) or len(reports) < len(program.words):
            if ctx.get(core.halted):
                await ctx.tick()  # to see what was accepted in this cycle
                assert len(reports) >= len(program.words) - 1  # all but its own
            await ctx.tick()
        lines = [[ctx.get(memory.data[row]) for memory in memories] for row in range(PARAMS.smem.rows)]
        raw = b"".join(chunk.to_bytes(CHUNK_BITS // 8, "little") for line in lines for chunk in line)
        assert raw == golden.smem.tobytes()
        assert sorted(report.number for report in reports) == list(range(len(program.words)))
        assert not any(report.code for report in reports)

    def collect(faults, seed):
        async def sink(ctx):
            while True:
                got, _ = await receive(ctx, faults, 1, stall=stalls["stall"], seed=seed + len(reports))
                reports.extend(got)

        return sink

    simulate(dut, processor, background=[collect(core.issued, 1), collect(core.collected, 2)], deadline=40_000)


def raw_elements(rng, shape, kind):
    """Random bits, so that there are infinities and NaNs among floats."""
    return rng.integers(0, 1 << 8 * kind.bytes, shape).astype(f"u{kind.bytes}")
