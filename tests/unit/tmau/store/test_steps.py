"""Store tracker: addresses of runs, runs that are dropped, ends that are not.

Steps of words are proved in tests/formal/tmau/store/test_steps.py.
"""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.steps import StoreTracker
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 5
PARAMS = TMAU_PRESETS["unit"]


def random_load(count):
    """Transfers, runs, and what becomes of them: (source, address, bytes, empty, last, tag)."""
    rng = random.Random(SEED)
    transfers, runs, expected = [], [], []
    for tag in range(count):
        run_bytes = rng.randrange(1, 200)
        data_start = rng.randrange(run_bytes)
        transfer = {
            "tag": tag,
            "smem": 128 * rng.randrange(8),
            "run_bytes": run_bytes,
            "gap": rng.randrange(256),
            "data_start": data_start,
            "data_end": rng.randrange(data_start, run_bytes) + 1,
            "immediate": rng.randrange(2),
            "swizzle": rng.randrange(4),
        }
        transfers.append(transfer)
        start, number = transfer["smem"], rng.randrange(1, 8)
        for index in range(number):
            run = {
                "address": rng.getrandbits(32),
                "inside": rng.randrange(2),
                "skip": rng.randrange(2),
                "last": int(index == number - 1),
            }
            runs.append(run)
            source = run["address"] if transfer["immediate"] else start + data_start
            if run["inside"]:
                count = transfer["data_end"] - data_start
                expected.append((source % 4096, run["address"], count, 0, run["last"], tag))
            elif run["last"]:
                expected.append((None, None, None, 1, 1, tag))
            start += run_bytes + transfer["gap"] * run["skip"]
    return transfers, runs, expected


@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs(mode):
    transfers, runs, expected = random_load(40)
    dut = elaborated(StoreTracker, PARAMS)
    came, _ = transact(dut, {"transfers": transfers, "runs": runs}, {"o": len(expected)}, mode, seed=SEED)
    for run, (source, address, count, empty, last, tag) in zip(came["o"], expected, strict=True):
        assert (run.empty, run.last, run.context.tag) == (empty, last, tag)
        assert run.context.swizzle == transfers[tag]["swizzle"]
        assert empty or (run.source, run.address, run.bytes) == (source, address, count)


def test_latency_one_and_full_rate():
    runs = [{"inside": int(n != 7), "last": n % 4 == 3} for n in range(20)]
    items = {"transfers": [{"data_end": 1, "run_bytes": 1}] * 5, "runs": runs}
    _, cycles = transact(elaborated(StoreTracker, PARAMS), items, {"o": 20})
    assert (cycles["runs"], cycles["o"]) == ([*range(20)], [*range(1, 21)])
