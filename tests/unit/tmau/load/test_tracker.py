"""Response tracker: runs in absolute addresses, in every stall mode, at full rate and with latency 1."""

import random

import pytest

from tilewright.hw.tmau.load.tracker import ResponseTracker
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=32, max_outstanding=64, commands_in_flight=16)
SEED = 11


def random_load(count, runs):
    """``count`` transfers of at most ``runs`` runs, their rows, and the runs that they mean."""
    rng = random.Random(SEED)
    transfers, rows, expected = [], [], []
    for tag in range(count):
        length = rng.choice([1, 2, 4, 16 * rng.randint(1, 12), rng.randint(1, 200)])
        gap = rng.choice([0, 0, 1, 16, 112, rng.randint(1, 127)])
        number = rng.randint(1, runs)
        start = rng.randint(0, PARAMS.smem.size_bytes - number * (length + gap))
        first, end = sorted(rng.sample(range(length + 1), 2))
        folds = rng.random() < 0.3
        first, gap = (0, 0) if folds else (first, gap)
        context = {
            "tag": tag,
            "quiet": tag % 2,
            "signal": 1,
            "barrier": 8,
            "bytes": number * length,
            "swizzle": tag % 4,
            "fill": tag << 26,
            "tf32": 1,
            "loop": tag // 2 % 2,
            "stage": tag // 4 % 2,
            "reduction": tag % 9,
            "element": tag % 15,
        }
        place = {"smem": start, "run_bytes": length, "gap": gap, "data_start": first, "data_end": end}
        transfers.append(context | place | {"fill": tag << 26 | 5 << 32})
        here = start
        for k in range(number):
            skip, last = rng.getrandbits(1), k == number - 1
            inside, offset, shared = rng.getrandbits(1), rng.randrange(PARAMS.bus_bytes), rng.getrandbits(1)
            row = {"inside": inside, "offset": offset, "shared": shared, "skip": skip, "last": last, "folded": folds}
            run_bytes = rng.randint(1, length) if folds else length  # of pixels that were taken together
            following = here + run_bytes + gap * skip
            rows.append(row | {"bytes": run_bytes if folds else rng.getrandbits(13)})
            expected.append(
                {
                    "start": here,
                    "end": here + run_bytes,
                    "inside": inside,
                    "data_start": here + first,
                    "data_end": here + (run_bytes if folds else end),
                    "word_end": here + first - offset + PARAMS.bus_bytes,
                    "shared": shared,
                    "close": last or following >> 7 != (here + run_bytes) >> 7,
                    "last": last,
                    "context": context,
                }
            )
            here = following
    return transfers, rows, expected


def run(transfers, rows, mode):
    dut = elaborated(ResponseTracker, PARAMS)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {}

    async def send_transfers(ctx):
        result["transfers"] = await send(ctx, dut.transfers, transfers, idle=idle, seed=SEED)

    async def send_rows(ctx):
        result["rows"] = await send(ctx, dut.rows, rows, idle=idle, seed=SEED + 1)

    async def sink(ctx):
        result["runs"] = await receive(ctx, dut.runs, len(rows), stall=stall, seed=SEED)

    simulate(dut, send_transfers, send_rows, sink, background=[watch_stream(dut.runs)])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs_are_where_transfers_and_rows_say(mode):
    transfers, rows, expected = random_load(60, 6)
    runs, _ = run(transfers, rows, mode)["runs"]
    for number, (came, wanted) in enumerate(zip(runs, expected, strict=True)):
        assert came == came.shape().const(wanted), f"run {number}"


@pytest.mark.parametrize("runs", [1, 2, 6])
def test_latency_one_and_a_run_a_cycle(runs):
    transfers, rows, _ = random_load(30, runs)
    result = run(transfers, rows, "none")
    assert result["runs"][1] == list(range(1, len(rows) + 1))


def test_rows_wait_for_their_transfer():
    transfers, rows, expected = random_load(1, 3)
    dut = elaborated(ResponseTracker, PARAMS)
    cycles = []

    async def send_late(ctx):
        await ctx.tick().repeat(10)
        await send(ctx, dut.transfers, transfers)

    async def send_rows(ctx):
        await send(ctx, dut.rows, rows)

    async def sink(ctx):
        cycles.extend((await receive(ctx, dut.runs, len(expected)))[1])

    simulate(dut, send_late, send_rows, sink)
    assert cycles == list(range(11, 11 + len(expected)))
