"""The golden model against a second one: element by element, from the text of docs/tmau.md, in plain Python."""

import math
import random
import struct
from itertools import product

import numpy as np

from tilewright import golden
from tilewright.golden import Memory, TensorMap, limits, tx_bytes
from tilewright.golden.numeric import round_tf32
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.smem.swizzle import swizzle
from tilewright.golden.spec import Swizzle
from tilewright.sim.results import record

SEED = 20240611
DESCRIPTORS = 1200

ELEMENT_BYTES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2,
                 "f32": 4, "f64": 8, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1}  # fmt: skip
SPANS = {"none": 0, "32B": 32, "64B": 64, "128B": 128}


def naive_swizzle(a, swizzle):
    """Shared-memory address ``a``: span 32: bit 4 ^= bit 7; 64: bits 5:4 ^= 8:7; 128: bits 6:4 ^= 9:7."""
    for bit in range({"none": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle]):
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


def elements(case, coords):
    """Yields each element of the box: index of its row, index in the row, global address or None if outside."""
    e, size = ELEMENT_BYTES[case["element"]], case["size"]
    rank = len(size)
    steps = [1, *case["traversal"][1:]]  # traversal of dimension 0 is ignored
    counts = [math.ceil(box / step) for box, step in zip(case["box"], steps, strict=True)]
    rows = product(*(range(count) for count in reversed(counts[1:])))
    for row, outer in enumerate(rows):
        for i0 in range(counts[0]):
            index = [i0, *reversed(outer)]
            x = [coords[d] + index[d] * steps[d] for d in range(rank)]
            address = None
            if all(0 <= x[d] < size[d] for d in range(rank)):
                address = case["address"] + x[0] * e + sum(x[d] * case["stride"][d - 1] for d in range(1, rank))
            yield row, i0, address


def naive_load(case, box, gmem, smem, base):
    """Changes the bytearray ``smem``; ``case`` holds the fields of the map, ``box`` the elements of the box."""
    e = ELEMENT_BYTES[case["element"]]
    pitch = max(case["box"][0] * e, SPANS[case["swizzle"]])
    fill = case["fill"]
    pattern = fill["constant"] if isinstance(fill, dict) else {"zero": 0, "nan": 0x7FF77FF7}[fill]
    for row, column, address in box:
        place = base + row * pitch + column * e
        if address is None:
            data = bytes(pattern >> 8 * (b % 4) & 0xFF for b in range(place, place + e))
        else:
            data = gmem[address : address + e]
            if case["element"] == "tf32":
                data = naive_tf32(int.from_bytes(data, "little")).to_bytes(4, "little")
        for b in range(e):
            smem[naive_swizzle(place + b, case["swizzle"])] = data[b]


def naive_limits(case, box, bus_bytes, base):
    """Bus words, rows with bytes in the tensor, written lines, and those of them that are all fill."""
    e = ELEMENT_BYTES[case["element"]]
    pitch = max(case["box"][0] * e, SPANS[case["swizzle"]])
    words, rows, lines, data_lines = set(), set(), set(), set()
    for row, column, address in box:
        line = (base + row * pitch + column * e) // 128
        lines.add(line)
        if address is not None:
            words.add(address // bus_bytes)
            rows.add(row)
            data_lines.add(line)
    return golden.Limits(len(words), len(rows), len(lines), len(lines - data_lines))


def random_case(rng):
    """Fields of a small legal map, and coordinates that often reach over an edge."""
    element, swizzle = rng.choice(list(ELEMENT_BYTES)), rng.choice(list(SPANS))
    e, rank = ELEMENT_BYTES[element], rng.randint(1, 5)
    row_chunks = rng.randint(1, (SPANS[swizzle] or 80) // 16)
    box, room = [row_chunks * 16 // e], 24
    for _ in range(rank - 1):
        box.append(rng.randint(1, min(room, 6)))
        room = max(room // box[-1], 1)
    size = [rng.randint(1, box[0] * 3), *(rng.randint(1, 8) for _ in box[1:])]
    kinds = ["zero", {"constant": rng.getrandbits(32)}] + ["nan"] * ("f" in element)
    case = {
        "element": element, "swizzle": swizzle, "fill": rng.choice(kinds), "size": size, "box": box,
        "stride": [16 * rng.choice([0, 1, rng.randint(0, 40)]) for _ in box[1:]],
        "traversal": [rng.randint(1, 8) if rng.random() < 0.3 else 1 for _ in box],
        "address": 16 * rng.randint(0, 64),
    }  # fmt: skip
    if rng.random() < 0.25:
        case["size"] = [max(n, b) for n, b in zip(size, box, strict=True)]
        return case, [rng.randint(0, n - b) for n, b in zip(case["size"], box, strict=True)]
    coords = [
        rng.randint(-b - 1, n + 1) if rng.random() < 0.35 else rng.randint(0, n - 1)
        for b, n in zip(box, size, strict=True)
    ]
    return case, coords


def test_random_descriptors_match_the_naive_model():
    print(f"seed {SEED}, {DESCRIPTORS} descriptors")
    rng = random.Random(SEED)
    gmem = mix_pattern(1 << 15, 3)
    edges = {"inside": 0, "cut": 0, "outside": 0}
    for number in range(DESCRIPTORS):
        case, coords = random_case(rng)
        tmap, base = TensorMap(**case), 128 * rng.randint(0, 3)
        expected = bytearray(mix_pattern(1 << 15, 7))
        box = list(elements(case, coords))
        naive_load(case, box, gmem.tobytes(), expected, base)
        smem = golden.load(tmap, coords, Memory(gmem), mix_pattern(1 << 15, 7), base)
        assert smem.tobytes() == bytes(expected), f"descriptor {number}: {case} at {coords}"

        bus_bytes = rng.choice([16, 32, 64])
        expected = naive_limits(case, box, bus_bytes, base)
        assert limits(tmap, coords, bus_bytes, base) == expected, f"descriptor {number}: {case} at {coords}"
        inside = [address is not None for _, _, address in box]
        assert tx_bytes(tmap) == len(inside) * ELEMENT_BYTES[case["element"]]
        edges["inside" if all(inside) else "cut" if any(inside) else "outside"] += 1
    assert min(edges.values()) > DESCRIPTORS // 10, edges
    record("second-opinion", cases=DESCRIPTORS, mismatches=0, seed=SEED)


def test_tf32_matches_the_naive_model():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    # Random numbers, and around each exponent the patterns that decide a rounding.
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
    for name, mode in {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}.items():
        moved = swizzle(addresses, mode)
        assert moved.tolist() == [naive_swizzle(a, name) for a in range(4096)]
        assert (swizzle(moved, mode) == addresses).all()
        assert (moved // 128 == addresses // 128).all()
