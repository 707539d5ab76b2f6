"""Runs in absolute addresses, in every stall mode; latency and rate.

That steps cover their runs and use the right words is proved in tests/formal/tmau/load/test_steps.py.
"""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.load.steps import ResponseTracker, StepGenerator
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

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


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("longest", [1, 6])
def test_runs_are_where_transfers_and_rows_say(longest, mode):
    transfers, rows, expected = random_load(60, longest)
    dut = elaborated(ResponseTracker, PARAMS)
    came, cycles = transact(dut, {"transfers": transfers, "rows": rows}, {"runs": len(rows)}, mode, seed=SEED)
    for number, (run, wanted) in enumerate(zip(came["runs"], expected, strict=True)):
        assert run == run.shape().const(wanted), f"run {number}"
    assert mode != "none" or cycles["runs"] == list(range(1, len(rows) + 1)), "latency 1, a run a cycle"


def make_run(start, length, *, data=None, offset=0, shared=0, close=0, last=0, tag=0, bus_bytes=16):
    """A run; ``data`` is the part of it that is inside, relative to the start."""
    first, end = data or (0, 0)
    return {
        "start": start,
        "end": start + length,
        "inside": data is not None,
        "data_start": start + first,
        "data_end": start + end,
        "word_end": start + first - offset + bus_bytes,
        "shared": shared,
        "close": close or last,
        "last": last,
        "context": {"tag": tag},
    }


def steps_of(runs, count):
    """The first ``count`` steps, and the cycles of runs and steps."""
    dut = elaborated(StepGenerator, TMAU_PRESETS["unit"])
    came, cycles = transact(dut, {"runs": runs}, {"steps": count})
    return came["steps"], cycles["runs"], cycles["steps"]


def bytes_of_a_word(k):
    """Single bytes at odd places, several in a line and fifteen in a bus word."""
    return make_run(9 * k, 1, data=(0, 1), offset=k % 15, shared=k % 15 > 0, close=9 * k // 128 != (9 * k + 9) // 128)


@pytest.mark.parametrize(
    "make",
    [
        lambda k: make_run(16 * k, 16, data=(0, 16), last=k % 3 == 2),
        bytes_of_a_word,
        # Seven bytes behind each other, wherever lines end.
        lambda k: make_run(7 * k, 7, data=(0, 7), offset=k % 8),
    ],
    ids=["chunks", "bytes", "sevens"],
)
def test_latency_one_and_a_run_a_cycle(make):
    _, run_cycles, step_cycles = steps_of([make(k) for k in range(30)], 30)
    assert (run_cycles, step_cycles) == (list(range(30)), list(range(1, 31)))
