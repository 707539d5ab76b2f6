"""Rows and pixels that adjoin in the tensor, taken together: the bytes of the golden model, each bus word once."""

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright import golden
from tilewright.golden import Memory, TensorMap, align, limits
from tilewright.golden.memory import mix_pattern
from tilewright.golden.tmau.align import Operator, Padding
from tilewright.golden.tmau.tile import footprint
from tilewright.results import record
from tilewright.sim.session import Session
from tilewright.spec import Opcode
from tilewright.tools.docs.figures import stale
from tilewright.verify.compare.batch_run import requested_words
from tilewright.verify.compare.differences import bus_differences

SEED = 20261122
BYTES = 1 << 18
CASES = 150


@pytest.fixture(scope="module", params=["unit", pytest.param("default", marks=pytest.mark.long)])
def session(request):
    with Session(request.param, ["tmau"], latency=10, stall=0.1, seed=SEED) as session:
        session.global_memory.write(0, mix_pattern(BYTES, 1))
        yield session


def compare(session, tmap, coords, address, offsets=(0, 0, 0)):
    """One load into memory full of something else. Words that runs share are asked for once; returns the run."""
    params, memory = session.params.tmau, Memory(mix_pattern(BYTES, 1))
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


ROOT = Path(__file__).parents[3]
ALIGN_SEED = 20261121
PRESET = "unit"
GLOBAL_BYTES = 1 << 16
TARGET, AGAIN = 1 << 13, 5 << 13  # where the padded tensor goes, and the one without padding again
BOX_BYTES = 2048
WAIT_ALL = {"opcode": Opcode.WAIT_ALL}
#: N, C, H, W; the last one takes several boxes.
SHAPES = [(3, 5, 3, 7), (1, 1, 1, 1), (2, 3, 5, 5), (5, 1, 7, 1), (2, 4, 2, 6), (1, 3, 17, 31)]
#: Element type and granularity: the page's case, and what an AXI mover of 16-byte words asks for.
GRAINS = [("f16", 4), ("u8", 16), ("u8", 4)]
#: Bits that each padding has in f16; what they do to softmax, maxima and sums is in tests/golden/tmau/test_align.py.
PADDINGS = {Padding.ZERO: 0, Padding.MINUS_INFINITY: 0xFC00, Padding.LOWEST: 0xFBFF}


align_session = session_fixture(PRESET, engines=["tmau"], latency=12, stall=0.1, seed=ALIGN_SEED)


def copy(align_session, source, target, starts):
    """Moves every box from one tensor to the other: loads of what shared memory holds, and stores of the same."""
    slots = align_session.params.smem.size_bytes // BOX_BYTES
    for first in range(0, len(starts), slots):
        boxes = [(start, BOX_BYTES * slot) for slot, start in enumerate(starts[first : first + slots])]
        yield from (align_session.command(source, *box) for box in boxes)
        yield WAIT_ALL
        yield from (align_session.command(target, *box, opcode=Opcode.STORE) for box in boxes)
        yield WAIT_ALL


def moved(align_session, contents, source, target, starts):
    """Global memory after that, and the run."""
    align_session.clear()
    align_session.global_memory.write(0, contents)
    run = align_session.run(list(copy(align_session, source, target, starts)), memory=(0, len(contents)))
    assert run.error is None
    assert bus_differences(run) == []
    return run.memory, run


def padded_by_the_rule(array, operator, granularity, value):
    """The table of the page, with numpy."""
    n, c, h, w = array.shape
    view, longer = {
        "elementwise": ((n * c * h * w,), [0]),
        "row": ((n, c * h * w), [0]),
        "column": ((n, c * h * w), [1]),
        "batch_norm_2d": ((n * c, h * w), [1]),
        "pool": ((n * c * h, w), [1]),
        "batch_norm_3d": ((n, c, h * w), [1, 2]),
    }[operator.value]
    multiple = granularity // array.itemsize
    widths = [(0, -size % multiple if axis in longer else 0) for axis, size in enumerate(view)]
    return np.pad(array.reshape(view), widths, constant_values=value)


@pytest.mark.parametrize("operator", Operator)
@pytest.mark.parametrize(("element", "granularity"), GRAINS)
def test_padding_is_what_the_rule_says_and_can_be_taken_away(align_session, operator, element, granularity):
    rng, paddings = (
        np.random.default_rng(ALIGN_SEED),
        itertools.cycle(PADDINGS if element == "f16" else [*PADDINGS][:1]),
    )
    for shape, padding in zip(SHAPES, paddings, strict=False):
        array = rng.integers(1, 250, shape).astype("u1" if element == "u8" else "u2")
        # The address is a multiple of an element only.
        places = {"source": 5 * array.itemsize, "target": TARGET, "box_bytes": BOX_BYTES}
        alignment = align(shape, element, operator, granularity, padding=padding, **places)
        source, contents = alignment.source.address, mix_pattern(GLOBAL_BYTES, 1)
        contents[source : source + array.nbytes] = array.reshape(-1).view(np.uint8)
        wanted = contents.copy()
        padded = padded_by_the_rule(array, operator, granularity, PADDINGS[padding])
        assert padded.nbytes == array.nbytes + alignment.added_bytes <= AGAIN - TARGET
        wanted[TARGET : TARGET + padded.nbytes] = padded.reshape(-1).view(np.uint8)
        there, _ = moved(align_session, contents, alignment.source, alignment.target, alignment.starts)
        assert (there == wanted).all(), shape

        address = AGAIN + 3 * array.itemsize
        wanted[address : address + array.nbytes] = array.reshape(-1).view(np.uint8)
        without = replace(alignment.source, address=address)
        back, _ = moved(align_session, there, alignment.target, without, alignment.starts)
        assert (back == wanted).all(), shape


def everywhere(shape, multiple):
    """Maps of a tensor and of its copy with every dimension padded, and the bytes that are added."""
    padded = tuple(-(-n // multiple) * multiple for n in shape)

    def strides(sizes):
        return tuple(2 * math.prod(sizes[d + 1 :]) for d in reversed(range(len(sizes) - 1)))

    fields = {"element": "f16", "box": padded[::-1], "unaligned": True}
    source = TensorMap(address=10, size=shape[::-1], stride=strides(shape), **fields)
    target = TensorMap(address=TARGET, size=padded[::-1], stride=strides(padded), **fields)
    return source, target, 2 * (math.prod(padded) - math.prod(shape))


#: Bytes added to (3, 5, 3, 7) of 2-byte elements for a granularity of 4, by hand.
ADDED = {"elementwise": 2, "row": 210, "column": 6, "batch_norm_2d": 30, "pool": 90, "batch_norm_3d": 162,
         "everywhere": 906}  # fmt: skip


@pytest.mark.long
def test_less_memory_and_no_more_cycles_than_padding_every_dimension():
    shape, latency, added, cycles, cases = (3, 5, 3, 7), 100, {}, {}, {}
    with Session("default", ["tmau"], latency=latency) as align_session:
        for operator in Operator:
            alignment = align(shape, "f16", operator, 4, source=10, target=TARGET, box_bytes=BOX_BYTES)
            cases[operator.value] = alignment.source, alignment.target, alignment.starts, alignment.added_bytes
        source, target, extra = everywhere(shape, 2)
        cases["everywhere"] = source, target, [(0, 0, 0, 0)], extra
        contents = mix_pattern(GLOBAL_BYTES, 1)
        for name, (source, target, starts, extra) in cases.items():
            moved(align_session, contents, source, target, starts)  # both descriptors are cached from here on
            there, back = (
                align_session.run(list(copy(align_session, *maps, starts))).span
                for maps in ((source, target), (target, source))
            )
            added[name], cycles[name] = extra, (there, back)
            print(f"{name:14} {extra:4} bytes added, {there:4} cycles there, {back:4} back")
    assert added == ADDED
    for name, there_and_back in itertools.islice(cycles.items(), len(Operator)):
        assert sum(there_and_back) <= sum(cycles["everywhere"]), name
    record("align", rows={name: {"there": there, "back": back} for name, (there, back) in cycles.items()})
    assert not stale("align", ROOT)
