"""Store tracker: addresses of runs, runs that are dropped, ends that are not."""

import random

import pytest

from support.streams import transact
from tilewright.golden.smem import swizzle
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.steps import StoreTracker, WordStepGenerator
from tilewright.spec import LINE_BYTES, Swizzle
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


WORD_STEPS_SEED = 21


def random_runs(count):
    rng = random.Random(WORD_STEPS_SEED)
    runs, source = [], 0
    for number in range(count):
        source = rng.choice([source, rng.randrange(3000)])
        size, last = rng.randrange(1, 300), rng.random() < 0.3
        run = {"source": source, "address": rng.getrandbits(32), "bytes": size, "last": last}
        context = {"tag": number, "swizzle": rng.randrange(4)}
        runs.append(run | {"empty": last and rng.random() < 0.3, "context": context})
        source += size
    return runs


def steps_of(runs, bus_bytes):
    """Steps: (word, first, end, turn, straddle, fetched segment or None, last)."""
    held = None
    for run in runs:
        source, address, left = run["source"], run["address"], run["bytes"]
        if run["empty"]:
            yield (0, None, None, None, None, None, 1)
            left = 0
        while left:
            first = address % bus_bytes
            count = min(bus_bytes - first, left)
            segments = [source // bus_bytes, (source + count - 1) // bus_bytes]
            if segments[0] != segments[1] and held != segments[0]:
                held = segments[0]
                yield (0, None, None, None, None, held, 0)
            taken = segments[1] if held != segments[1] else None
            held = segments[1]
            turn, straddle = (source - first) % bus_bytes, int(segments[0] != segments[1])
            yield (1, first, first + count, turn, straddle, taken, int(run["last"] and count == left))
            source, address, left = source + count, address + count, left - count
        held = None if run["last"] else held


def place(segment, bus_bytes, mode):
    """The line that a segment lies in, and the bank that its first 16 bytes lie in."""
    address = swizzle(segment * bus_bytes, mode)
    return address // 128, address // 16 % 8


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_steps(bus_bytes, mode):
    dut = elaborated(WordStepGenerator, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes))
    runs = random_runs(60)
    expected = list(steps_of(runs, bus_bytes))
    modes = [Swizzle(run["context"]["swizzle"]) for run in runs]
    came, cycles = transact(dut, {"i": runs}, {"steps": len(expected)}, mode, seed=WORD_STEPS_SEED)
    line = None  # of the previous segment of the transfer
    for step, (word, first, end, turn, straddle, segment, last) in zip(came["steps"], expected, strict=True):
        cut = step.cut
        assert (cut.word, cut.last, cut.fetch) == (word, last, segment is not None)
        assert segment is None or (step.row, step.bank) == place(segment, bus_bytes, modes[cut.tag])
        if segment is not None:
            before, line = line, segment * bus_bytes // LINE_BYTES
            assert step.again == (line == before)
        line = None if last else line
        assert not word or (cut.first, cut.end, cut.turn, cut.straddle) == (first, end, turn, straddle)
    assert mode != "none" or cycles["steps"] == [*range(1, 1 + len(expected))]
