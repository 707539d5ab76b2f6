"""Two engines at one shared memory: each reads what it asked for, writes, and operates barriers."""

import random
from types import SimpleNamespace

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.signatures import SharedMemorySignature
from tilewright.hw.smem.top import SharedMemory, connect_engines
from tilewright.spec import BANKS, BarrierOp
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

SMEM = SmemParams(1024)
COUNT = 30


class TwoEngines(wiring.Component):
    """A shared memory with the ports of two engines."""

    def __init__(self):
        self.params, self.memory = SimpleNamespace(smem=SMEM), SharedMemory(SMEM, stores=True)
        super().__init__(
            {
                "engines": In(SharedMemorySignature(SMEM)).array(2),
                "barriers": In(stream.Signature(BarrierRequestLayout(SMEM))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        connect_engines(m, self, self.memory, one=flipped(self.engines[0]), other=flipped(self.engines[1]))
        return m


def test_both_write_then_read_each_other():
    """Each writes half of the chunks, and reads all of them when both are done."""
    dut = TwoEngines()
    chunks = SMEM.size_bytes // 16
    stalls, written, rng = STALL_MODES["both"], [], random.Random(6)
    reads = [[[rng.randrange(chunks) for _ in range(BANKS)] for _ in range(COUNT)] for _ in range(2)]

    def engine(number):
        port = dut.engines[number]

        async def writes(ctx):
            own = [chunk for chunk in range(chunks) if chunk % 2 == number]
            items = [
                {"chunks": own[at : at + BANKS], "data": [chunk * 7 + 1 for chunk in own[at : at + BANKS]],
                 "strobes": [0xFFFF] * BANKS}
                for at in range(0, len(own), BANKS)
            ]  # fmt: skip
            await send(ctx, port.scatter, items, idle=stalls["idle"], seed=number)
            await ctx.tick().until(port.scatter_idle)
            written.append(number)
            while len(written) < 2:
                await ctx.tick()
            await send(ctx, port.barriers, [{"op": BarrierOp.INIT, "address": 8 * number, "value": 3}])
            (result,), _ = await receive(ctx, port.barrier_results, 1)
            assert not result.error

        async def asks(ctx):
            while len(written) < 2:
                await ctx.tick()
            await send(
                ctx, port.reads, [{"lanes": 0xFF, "chunks": lanes} for lanes in reads[number]], idle=stalls["idle"],
                seed=number + 5,
            )  # fmt: skip

        async def answers(ctx):
            answers, _ = await receive(ctx, port.read_data, COUNT, stall=stalls["stall"], seed=number)
            for lanes, answer in zip(reads[number], answers, strict=True):
                # The first chunk holds the barriers.
                assert all(data == chunk * 7 + 1 for chunk, data in zip(lanes, answer, strict=True) if chunk)

        return writes, asks, answers

    async def processor(ctx):
        await send(ctx, dut.barriers, [{"op": BarrierOp.ARRIVE, "address": 4, "value": 1}])
        (result,), _ = await receive(ctx, dut.barrier_results, 1)
        assert result.error

    simulate(dut, *engine(0), *engine(1), processor)
