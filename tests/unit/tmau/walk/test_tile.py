"""The walker visits every run once, in order, one a cycle, without a gap between transfers."""

import itertools
import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.tile import TileWalker
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
#: Bytes of level 1: before the tensor, behind it, all.
LENGTHS = ("before", "behind", "level_bytes")


#: Of which dimension 0 has no level.
UNGATHERED = PARAMS.replace(features=tuple(name for name in PARAMS.features if name != "gather"))


def random_walk(rng, gathers=True):
    lasts = [rng.choice([0, 0, 1, rng.randint(0, 4)]) for _ in range(5)]
    intervals = [{"first": rng.choice([0, 0, 1]), "end": rng.choice([last + 1, last + 1, 1])} for last in lasts]
    folds = rng.getrandbits(1)
    if folds or not gathers:
        lasts[0], intervals[0] = 0, {"first": 0, "end": 1}
    if folds:
        # One index before the tensor, one behind it, and one at least inside.
        first, behind = rng.getrandbits(1), rng.getrandbits(1)
        lasts[1] = first + behind + rng.randint(0, 3)
        intervals[1] = {"first": first, "end": lasts[1] + 1 - behind}
    return {
        "store": rng.getrandbits(1),
        "loop": rng.getrandbits(1),
        "origin": rng.getrandbits(32),
        "data_bytes": rng.randint(1, 4096),
        "strides": [rng.getrandbits(32) for _ in range(5)],
        "lasts": lasts,
        "intervals": intervals,
        "outside": not folds and rng.random() < 0.1,
        "folds": folds,
        **{name: rng.randint(1, 4096) for name in LENGTHS},
    }


def visits(walk):
    """The runs of one walk, from the definition."""
    places = [place[::-1] for place in itertools.product(*(range(last + 1) for last in reversed(walk["lasts"])))]
    runs = []
    for index in places:
        within = [v["first"] <= i < v["end"] for i, v in zip(index, walk["intervals"], strict=True)]
        inside, folded = not walk["outside"] and all(within), walk["folds"] and not all(within)
        apart = folded and not all(within[2:])
        if apart and index[1]:
            continue
        counted = [index[0], index[1] - (walk["folds"] and walk["intervals"][1]["first"]), *index[2:]]
        address = walk["origin"] + sum(map(int.__mul__, counted, walk["strides"]))
        length = walk[LENGTHS[2] if apart else LENGTHS[index[1] > 0] if folded else "data_bytes"]
        flags = {"inside": inside, "folded": folded, "skip": index[0] == walk["lasts"][0]}
        runs.append((address % (1 << 32), length, flags | {name: walk[name] for name in ("store", "loop")}))
    for number, (address, length, flags) in enumerate(runs):
        yield address, length, flags | {"last": number == len(runs) - 1}


@pytest.mark.parametrize("params", [PARAMS, UNGATHERED], ids=["gathers", "not"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs_of_back_to_back_walks(mode, params):
    rng = random.Random(SEED)
    items = [random_walk(rng, params.has("gather")) for _ in range(60)]
    expected = [run for walk in items for run in visits(walk)]
    came, cycles = transact(elaborated(TileWalker, params), {"i": items}, {"o": len(expected)}, mode)
    for run, (address, data_bytes, flags) in zip(came["o"], expected, strict=True):
        assert {name: run[name] for name in flags} == flags
        assert not run.inside or run.address == address
        assert not (run.inside or run.folded) or run.bytes == data_bytes
    assert mode != "none" or cycles["o"] == list(range(1, len(expected) + 1)), "latency 1, a run in every cycle"
