"""The golden access unit against a second model in plain Python, element by element, from the text of docs/tmau.md."""

import math
import random
import struct
from itertools import product

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import Memory, TensorMap, limits, tx_bytes
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import swizzle
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.golden.tmau.tile import extent, footprint
from tilewright.golden.tmau.transfer import round_tf32
from tilewright.results import record
from tilewright.spec import Element, Reduction, Swizzle

SEED = 20261121
LOADS, STORES = 1600, 400
MEMORY_BYTES = 1 << 16
SPANS = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
SLICES = {"none": 0, "16B": 16, "32B": 32}


def element_bytes(case):
    return Element[case["element"].upper()].bytes


def naive_swizzle(a, swizzle):
    """Shared-memory address ``a``: span 32: bit 4 ^= bit 7; 64: bits 5:4 ^= 8:7; 128: bits 6:4 ^= 9:7."""
    for bit in range(list(SPANS).index(swizzle)):
        if a & 1 << 7 + bit:
            a ^= 1 << 4 + bit
    return a


def naive_tf32(bits):
    """Rounds one float32 through its value."""
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    if math.isnan(value):
        return 0x7FFFE000
    if math.isinf(value) or value == 0:
        return bits
    quantum = 2.0 ** (max(math.frexp(value)[1] - 1, -126) - 10)
    rounded = round(value / quantum) * quantum  # Python rounds halves to even
    if abs(rounded) >= 2.0**128:
        return 0x7F800000 | bits & 0x80000000
    return struct.unpack("<I", struct.pack("<f", math.copysign(rounded, value)))[0]


def naive_coordinates(case, coords, offsets):
    """Yields row, index in the row, and tensor coordinates of each element, or slice with interleave."""
    size, steps, sliced = case["size"], list(case["traversal"]), case["interleave"] != "none"
    rank = len(size)
    if case["mode"] == "im2col":
        first = 0 if sliced else 1
        spatial = list(range(first, first + rank - 2))
        high = [size[d] + case["upper"][k] for k, d in enumerate(spatial)]
        cursor = list(coords)
        for row in range(case["pixels"]):
            emitted = list(cursor)
            for k, d in enumerate(spatial):
                emitted[d] += offsets[k]
            if sliced:
                yield row, 0, emitted
            else:
                for c in range(case["channels"]):
                    yield row, c, [emitted[0] + c, *emitted[1:]]
            for k, d in enumerate(spatial):
                cursor[d] += steps[d]
                if cursor[d] < high[k]:
                    break
                cursor[d] = case["lower"][k]
            else:
                cursor[rank - 1] += steps[rank - 1]
        return
    if not sliced and not case["gather0"]:
        steps[0] = 1
    counts = [math.ceil(box / step) for box, step in zip(case["box"], steps, strict=True)]
    if sliced:
        counts[rank - 2] = 1
    for row, outer in enumerate(product(*(range(count) for count in reversed(counts[1:])))):
        for i0 in range(counts[0]):
            index = [i0, *reversed(outer)]
            yield row, i0, [coords[d] + index[d] * steps[d] for d in range(rank)]


def naive_walk(case, coords, offsets, base):
    """Row, place in shared memory without and with swizzle, and global address or None of each byte; and footprint."""
    unit = SLICES[case["interleave"]] or element_bytes(case)
    elements = list(naive_coordinates(case, coords, offsets))
    row_bytes = (max(i0 for _, i0, _ in elements) + 1) * unit
    pitch = max(row_bytes, SPANS[case["swizzle"]] if case["interleave"] == "none" else 0)
    walk = []
    for row, i0, x in elements:
        address = None
        if all(0 <= n < size for n, size in zip(x, case["size"], strict=True)):
            address = case["address"] + x[0] * unit + sum(n * s for n, s in zip(x[1:], case["stride"], strict=True))
        for b in range(unit):
            place = base + row * pitch + i0 * unit + b
            walk.append((row, place, naive_swizzle(place, case["swizzle"]), None if address is None else address + b))
    return walk, (elements[-1][0] + 1) * pitch


def naive_fill(case):
    return case["fill"]["constant"] if isinstance(case["fill"], dict) else {"zero": 0, "nan": 0x7FF77FF7}[case["fill"]]


def naive_load(case, walk, gmem, smem):
    """Changes the array ``smem``."""
    for _, place, swizzled, address in walk:
        smem[swizzled] = naive_fill(case) >> 8 * (place % 4) & 0xFF if address is None else gmem[address]
    if case["element"] == "tf32":
        for first in range(0, len(walk), 4):
            if walk[first][3] is not None:
                places = [swizzled for _, _, swizzled, _ in walk[first : first + 4]]
                smem[places] = list(naive_tf32(int.from_bytes(smem[places].tobytes(), "little")).to_bytes(4, "little"))


def naive_limits(case, walk, bus_bytes):
    """Bus words, rows with bytes in the tensor, written lines, and lines of fill alone."""
    unit = SLICES[case["interleave"]] or element_bytes(case)
    gathered = case["mode"] == "tile" and (case["gather0"] or case["interleave"] != "none") and case["traversal"][0] > 1
    rows = [place // unit if gathered else row for row, place, _, _ in walk]  # gathered elements are rows
    walk = [(row, *others) for row, (_, *others) in zip(rows, walk, strict=True)]
    data = [(row, place // 128, address // bus_bytes) for row, place, _, address in walk if address is not None]
    lines = {place // 128 for _, place, _, _ in walk}
    rows, data_lines, words = (set(values) for values in zip(*data, strict=True)) if data else (set(),) * 3
    return golden.Limits(len(words), len(rows), len(lines), len(lines - data_lines))


def random_case(rng, *, store=False):
    """Fields of a small legal map of any kind, coordinates that often reach over an edge, and offsets."""
    element = rng.choice([member.name.lower() for member in Element if member != Element.TF32 or not store])
    e = Element[element.upper()].bytes
    im2col, interleave = rng.random() < 0.5, rng.choice(["none", "none", "16B", "32B"])
    swizzle = "32B" if interleave == "32B" else rng.choice(list(SPANS))
    rank = rng.randint(3 if im2col or interleave != "none" else 1, 5)
    unaligned = rng.random() < 0.4
    granule = e if unaligned else 32 if interleave == "32B" else 16
    room = (SPANS[swizzle] or 80) // e if interleave == "none" else 6
    row = rng.randint(1, room) if unaligned or interleave != "none" else 16 // e * rng.randint(1, room * e // 16)
    size = [rng.randint(1, max(row * 2, 2)), *(rng.randint(1, 7) for _ in range(rank - 1))]
    fills = [{"constant": rng.getrandbits(32)}, "zero", *["nan"] * ("f" in element)]
    case = {
        "element": element, "interleave": interleave, "swizzle": swizzle, "unaligned": unaligned, "size": size,
        "gather0": rng.random() < 0.3, "fill": rng.choice(fills), "mode": "tile",
        "address": granule * rng.randint(0, 40), "stride": [granule * rng.randint(0, 40) for _ in size[1:]],
        "traversal": [rng.choice([1, 1, 2, 3, 8]) for _ in size],
    }  # fmt: skip
    low = 0 if store else -3
    coords = [rng.randint(low, n + 1) if rng.random() < 0.3 else rng.randint(0, n - 1) for n in size]
    if not im2col:
        case["box"] = box = [row, *(rng.randint(1, 4) for _ in size[1:])]
        if rng.random() < 0.25 and interleave == "none":
            case["size"] = [max(n, b) for n, b in zip(size, box, strict=True)]
            coords = [rng.randint(0, n - b) for n, b in zip(case["size"], box, strict=True)]
        return case, coords, (0, 0, 0)
    first = 0 if interleave != "none" else 1
    spatial = range(first, first + rank - 2)
    lower = [rng.randint(0 if store else -3, min(size[d] - 1, 2)) for d in spatial]
    upper = [rng.randint(lower[k] + 1 - size[d], 0 if store else 3) for k, d in enumerate(spatial)]
    for k, d in enumerate(spatial):
        coords[d] = rng.randint(lower[k], size[d] + upper[k] - 1)
    channels = SLICES[interleave] // e if interleave != "none" else row
    case |= {"mode": "im2col", "lower": lower, "upper": upper, "channels": channels, "pixels": rng.randint(1, 40)}
    return case, coords, (0, 0, 0) if store else tuple(rng.randint(0, 3) for _ in spatial)


@pytest.mark.parametrize(
    ("name", "seed", "loads"),
    [("second-opinion", SEED, LOADS), pytest.param("second-opinion-long", SEED + 1, 10_000, marks=pytest.mark.long)],
)
def test_random_loads_match_the_naive_model(name, seed, loads):
    print(f"seed {seed}, {loads} maps")
    rng = random.Random(seed)
    gmem = mix_pattern(MEMORY_BYTES, 3)
    kinds, edges = set(), {"inside": 0, "cut": 0, "outside": 0}
    for number in range(loads):
        case, coords, offsets = random_case(rng)
        tmap, base, bus_bytes = TensorMap(**case), 128 * rng.randint(0, 3), rng.choice([16, 32, 64])
        walk, reach = naive_walk(case, coords, offsets, base)
        expected = mix_pattern(MEMORY_BYTES, 7)
        naive_load(case, walk, gmem, expected)
        smem = golden.load(tmap, coords, Memory(gmem), mix_pattern(MEMORY_BYTES, 7), base, offsets)
        assert (smem == expected).all(), f"map {number}: {case} at {coords} offset {offsets}"
        assert (tx_bytes(tmap), footprint(tmap)) == (len(walk), reach), f"map {number}: {case}"
        assert limits(tmap, coords, bus_bytes, base, offsets=offsets) == naive_limits(case, walk, bus_bytes), number
        kinds.add((case["mode"], case["interleave"], case["unaligned"], case["gather0"], len(case["size"])))
        inside = [address is not None for *_, address in walk]
        edges["inside" if all(inside) else "cut" if any(inside) else "outside"] += 1
    assert len(kinds) > 50
    assert min(edges.values()) > loads // 10, edges
    record(name, cases=loads, mismatches=0, seed=seed)


def test_random_stores_and_reductions_match_the_naive_model():
    print(f"seed {SEED}, {STORES} maps")
    rng = random.Random(SEED)
    smem = mix_pattern(MEMORY_BYTES, 7)
    reductions = 0
    for number in range(STORES):
        case, coords, offsets = random_case(rng, store=True)
        tmap, base, fill = TensorMap(**case), 128 * rng.randint(0, 3), rng.random() < 0.2
        op = rng.choice([Reduction.NONE, *(op for op in Reduction if is_legal(op, tmap.element))])
        expected = mix_pattern(MEMORY_BYTES, 3)
        walk, e = naive_walk(case, coords, offsets, base)[0], tmap.element.bytes
        for first in range(0, len(walk), e):
            _, _, places, targets = zip(*walk[first : first + e], strict=True)
            if targets[0] is None:
                continue
            source = [naive_fill(case) >> 8 * (a % 4) & 0xFF for a in targets] if fill else smem[list(places)]
            targets = list(targets)
            source = np.array(source, np.uint8)
            expected[targets] = reduce(op, tmap.element, expected[targets], source) if op else source
        gmem = golden.store(tmap, coords, smem, Memory(mix_pattern(MEMORY_BYTES, 3)), base, op, fill)
        assert (gmem.data == expected).all(), f"map {number}: {case} at {coords}, {op.name}"
        reductions += op != Reduction.NONE
    assert reductions > STORES // 4


def test_extent_reaches_to_the_last_element():
    rng = random.Random(SEED)
    for _ in range(100):
        case, _, _ = random_case(rng)
        unit = SLICES[case["interleave"]] or element_bytes(case)
        ends = [
            x[0] * unit + sum(n * s for n, s in zip(x[1:], case["stride"], strict=True)) + unit
            for x in product(*((0, size - 1) for size in case["size"]))
        ]
        assert extent(TensorMap(**case)) == max(ends)


def test_tf32_matches_the_naive_model():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    # Random numbers, and the patterns that decide a rounding around each exponent.
    bits = [rng.getrandbits(32) for _ in range(5000)]
    bits += [
        sign << 31 | exponent << 23 | mantissa
        for sign in (0, 1)
        for exponent in (0, 1, 2, 126, 127, 253, 254, 255)
        for mantissa in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x2FFF, 0x3000, 0x7FEFFF, 0x7FF000, 0x7FFFFF)
    ]
    assert round_tf32(np.array(bits, np.uint32)).tolist() == [naive_tf32(b) for b in bits]


def test_swizzle_matches_the_naive_model_and_is_its_own_inverse():
    addresses = np.arange(0, 4096)
    for name, mode in zip(SPANS, Swizzle, strict=True):
        swizzled = swizzle(addresses, mode)
        assert swizzled.tolist() == [naive_swizzle(a, name) for a in range(4096)]
        assert (swizzle(swizzled, mode) == addresses).all()
        assert (swizzled // 128 == addresses // 128).all()


def direct_convolution(image, kernel, stride, pad, dilation):
    """Output of a convolution, N H W C-out, of an image N H W C and a kernel C-out C H W; pad is (before, after)."""
    image = np.pad(image, ((0, 0), pad, pad, (0, 0)))
    taps = kernel.shape[2]
    out = (image.shape[1] - (taps - 1) * dilation - 1) // stride + 1
    result = np.zeros((len(image), out, out, len(kernel)), np.int64)
    for n, h, w, co in product(*map(range, result.shape)):
        for kh, kw in product(range(taps), range(taps)):
            pixel = image[n, h * stride + kh * dilation, w * stride + kw * dilation]
            result[n, h, w, co] += int(pixel.astype(np.int64) @ kernel[co, :, kh, kw])
    return result


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "taps"),
    [(1, (1, 1), 1, 3), (1, (0, 0), 1, 3), (2, (1, 1), 1, 3), (1, (2, 2), 2, 3), (2, (2, 1), 1, 2), (3, (0, 2), 1, 1)],
)
def test_taps_of_im2col_loads_make_a_convolution(stride, pad, dilation, taps):
    rng = np.random.default_rng(SEED)
    image = rng.integers(-9, 9, (3, 9, 9, 16), dtype=np.int8)
    kernel = rng.integers(-9, 9, (5, 16, taps, taps), dtype=np.int8)
    expected = direct_convolution(image, kernel, stride, pad, dilation)
    tmap = TensorMap.im2col(
        image, pixels=math.prod(expected.shape[:3]), lower=(-pad[0],) * 2,
        upper=(pad[1] - (taps - 1) * dilation,) * 2, traversal=(1, stride, stride, 1),
    )  # fmt: skip
    result = np.zeros((tmap.pixels, len(kernel)), np.int64)
    for kh, kw in product(range(taps), range(taps)):
        pixels = golden.load(tmap, (0, -pad[0], -pad[0], 0), offsets=(kw * dilation, kh * dilation))
        result += pixels.view(np.int8).reshape(-1, 16).astype(np.int64) @ kernel[:, :, kh, kw].T.astype(np.int64)
    assert (result.reshape(expected.shape) == expected).all()
