"""TO BE DELETED with the block: staged words become lines, the last one as short as the run."""

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.staged_lines import StagedLines
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import receive, send, watch_stream


def test_words_become_lines():
    dut = elaborated(StagedLines, TMAU_PRESETS["unit"])
    lengths = [16, 128, 240, 256]
    words = [{"data": number} for length in lengths for number in range(length // 16)]
    came = []

    async def runs(ctx):
        await send(ctx, dut.runs, [{"bytes": length, "context": {"stage": 1}} for length in lengths])

    async def source(ctx):
        await send(ctx, dut.i, words)

    async def sink(ctx):
        came.extend((await receive(ctx, dut.o, 6, stall=0.3, seed=1))[0])

    simulate(dut, runs, source, sink, background=[watch_stream(dut.o)])
    assert [line.data >> 128 * 7 & 255 for line in came[1:]] == [7, 7, 7, 7, 15]
    assert came[3].data & 255 == 8, "the line after a whole one"
