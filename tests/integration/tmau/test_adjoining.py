"""Rows and pixels that adjoin in the tensor, taken together: the bytes of the golden model, each bus word once."""

import random

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import Memory, TensorMap, limits
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.tmau.tile import footprint
from tilewright.sim.compare.batch_run import requested_words
from tilewright.sim.session.tmau import TmauSession

SEED = 20261122
BYTES = 1 << 18
CASES = 150


@pytest.fixture(scope="module", params=["unit", pytest.param("default", marks=pytest.mark.long)])
def session(request):
    with TmauSession(request.param, latency=10, stall=0.1, seed=SEED) as session:
        session.global_memory.write(0, mix_pattern(BYTES, 1))
        yield session


def compare(session, tmap, coords, address, offsets=(0, 0, 0)):
    """One load into memory full of something else. Words that runs share are asked for once; returns the run."""
    params, memory = session.params, Memory(mix_pattern(BYTES, 1))
    before = np.full(params.smem.size_bytes, 0xA5, np.uint8)
    session.reset()
    session.shared_memory.write(0, before)
    run = session.run([session.command(tmap, coords, address, offsets=offsets)], trace=True, shared=True)
    assert run.error is None and run.violations == ()
    expected = golden.load(tmap, coords, memory, before, address=address, offsets=offsets)
    assert (run.shared == expected).all(), (tmap, coords, offsets)
    asked = requested_words(run.trace, params.bus_bytes)
    assert len(set(asked.tolist())) == limits(tmap, coords, params.bus_bytes, offsets=offsets).words
    return run


def pixels(rng, most):
    """A random image whose pixels adjoin along W, and a start in its bounding box."""
    spatial, element = rng.randint(1, 3), rng.choice(["u8", "f16", "tf32"])
    unit = {"u8": 1, "f16": 2, "tf32": 4}[element]
    unaligned = rng.random() < 0.4
    pixel = unit * rng.randint(1, 70 // unit) if unaligned else 16 * rng.randint(1, 4)
    sizes = [rng.randint(5, 40), *(rng.randint(1, 6) for _ in range(spatial - 1))]
    lower = [rng.randint(-3, 3), *(rng.randint(-1, 0) for _ in range(spatial - 1))]
    upper = [rng.randint(-2, 3), *(rng.randint(0, 1) for _ in range(spatial - 1))]
    images, stride, pitch = rng.randint(1, 4), [pixel], pixel
    for extent in sizes:
        pitch *= extent
        pitch += 0 if unaligned and rng.random() < 0.7 else -pitch % 16 + 16 * rng.choice([0, 0, 1, 3])
        stride.append(pitch)
    tmap = TensorMap(
        element=element,
        size=(pixel // unit, *sizes, images),
        stride=tuple(stride),
        address=(rng.randint(0, 200) * (unit if unaligned else 16)),
        mode="im2col",
        lower=lower,
        upper=upper,
        channels=pixel // unit,
        pixels=min(rng.randint(17, 300), most // pixel),
        unaligned=unaligned,
        fill="constant",
        fill_constant=0x01020304,
        traversal=(1, 1, *(rng.choice([1, 1, 2]) for _ in range(spatial - 1)), 1),
    )
    start = [rng.randint(low, size + high - 1) for low, size, high in zip(lower, sizes, upper, strict=True)]
    offsets = [rng.randint(0, 3) if k < spatial else 0 for k in range(3)]
    return tmap, (0, *start, rng.randint(-1, images - 1)), offsets


def test_pixels(session):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    size = session.params.smem.size_bytes
    for _ in range(CASES):
        tmap, coords, offsets = pixels(rng, min(size, 1 << 13))
        address = 128 * rng.randint(0, (size - footprint(tmap)) // 128)
        compare(session, tmap, coords, address, offsets)


def test_rows_with_gaps(session):
    """Rows that straddle bus words, with gaps of a swizzle between them."""
    rng = random.Random(SEED)
    for _ in range(CASES // 3):
        element = rng.choice(["u8", "tf32"])
        row, unit = 16 * rng.randint(1, 7), 4 if element == "tf32" else 1
        tmap = TensorMap(
            element=element,
            size=(row // unit, 40),
            stride=(row,),
            box=(row // unit, rng.randint(1, 20)),
            address=16 * rng.randint(0, 40),
            swizzle="128B",
        )
        compare(session, tmap, (0, rng.randint(-3, 30)), 0)
