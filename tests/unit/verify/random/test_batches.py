"""Random loads and batches: legal where they say so, clear of the barriers, the same for the same seed."""

import math
import random

import pytest

from tilewright.golden.tmau.tile import counts, footprint, walk
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.random.batches import BARRIERS, TENSOR_BYTES, random_batches
from tilewright.verify.random.maps import random_load, random_place

SEED = 4


@pytest.mark.parametrize(("gmem_bytes", "smem_bytes", "max_bytes"), [(4096, 1024, 256), (1 << 20, 1 << 17, None)])
def test_loads_fit_their_memories(gmem_bytes, smem_bytes, max_bytes):
    rng = random.Random(SEED)
    for _ in range(200):
        tmap, coords, smem = random_load(rng, gmem_bytes=gmem_bytes, smem_bytes=smem_bytes, max_bytes=max_bytes)
        assert footprint(tmap) <= (max_bytes or smem_bytes)
        assert smem % 128 == 0
        assert smem + footprint(tmap) <= smem_bytes
        assert math.prod(counts(tmap)[1:]) <= 4096
        for place in (coords, random_place(rng, tmap)):
            tile = walk(tmap, place)
            ends = tile.addresses[tile.inside] + tile.stop - tile.start
            assert not len(ends) or int(ends.max()) <= gmem_bytes


@pytest.mark.parametrize(
    "preset",
    [pytest.param(name, marks=[] if name in ("unit", "default") else pytest.mark.long) for name in TMAU_PRESETS],
)
def test_batches(preset):
    params = TMAU_PRESETS[preset]
    size = params.smem.size_bytes
    batches = list(random_batches(SEED, params, 300))
    assert batches == list(random_batches(SEED, params, 300))
    assert batches != list(random_batches(SEED + 1, params, 300))
    assert batches[0].fresh
    loads = [(batch, load) for batch in batches for load in batch.loads]
    legal = [(batch, load) for batch, load in loads if load.is_legal(size)]
    assert 0.9 < len(legal) / len(loads) < 1
    assert len({load.tmap for _, load in legal}) >= 250
    # At the bottom of the address space, at the top, and across 4 GiB.
    assert len({batch.base for batch in batches}) == (3 if params.addr_width > 32 else 2)
    for batch, load in legal:
        barriers = range(batch.barrier_line, batch.barrier_line + 8 * BARRIERS)
        assert load.smem >= barriers.stop or load.smem + footprint(load.tmap) <= barriers.start
        assert load.barrier is None or load.barrier in barriers[::8]
        assert batch.moved(load.tmap).address == batch.base + load.tmap.address
        assert load.tmap.address < TENSOR_BYTES
