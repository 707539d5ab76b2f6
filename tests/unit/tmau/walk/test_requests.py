"""Prefetches: their runs have a port of their own, and each line is reported once.

Routing of runs, rows and requests are proved in tests/formal/tmau/walk/test_requests.py.
"""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.requests import PrefetchLines, RunRouter
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 20261124
PARAMS = TMAU_PRESETS["unit"].replace(prefetches=True)


def test_runs_of_prefetches_have_a_port_of_their_own():
    runs = [{"address": number, "prefetch": number % 3 == 0, "store": number % 3 == 1} for number in range(30)]
    ports = ("prefetches", "stores", "loads")
    came, _ = transact(elaborated(RunRouter, PARAMS), {"tiles": runs}, dict.fromkeys(ports, 10), "both", settle=30)
    for first, port in enumerate(ports):
        assert [run.address for run in came[port]] == list(range(first, 30, 3))


def random_runs(rng, transfers):
    for _ in range(transfers):
        count, address = rng.randint(1, 8), rng.getrandbits(31)
        pitch = rng.choice([16, 64, 100, 128, 256, 4096])
        for number in range(count):
            size = rng.choice([1, 16, 64, 128, 200, 1000])
            flags = {"inside": rng.random() < 0.8, "last": number == count - 1, "folded": rng.randrange(2)}
            yield {"address": address, "bytes": size} | flags
            address += pitch


def lines_of(runs):
    reported, previous = [], None
    for run in runs:
        if run["inside"]:
            lines = range(run["address"] >> 7, (run["address"] + run["bytes"] - 1 >> 7) + 1)
            reported += [line for line in lines if line != previous or line != lines[0]]
            previous = lines[-1]
        if run["last"]:
            previous = None
    return reported


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_line_once(mode):
    runs = list(random_runs(random.Random(SEED), 40))
    expected = lines_of(runs)
    came, _ = transact(elaborated(PrefetchLines, PARAMS), {"i": runs}, {"o": len(expected)}, mode, settle=10)
    assert came["o"] == expected


def test_one_line_a_cycle_and_one_cycle_for_each_run():
    run = {"address": 256, "bytes": 512, "inside": 1, "last": 1}
    _, cycles = transact(elaborated(PrefetchLines, PARAMS), {"i": [run] * 2}, {"o": 8})
    assert cycles["o"] == [1, 2, 3, 4, 6, 7, 8, 9]
