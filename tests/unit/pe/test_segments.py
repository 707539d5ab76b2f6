"""The segment table: every rule of docs/pe.md, derived fields, and the time of a write."""

import random

from amaranth.hdl import ResetInserter, Signal

from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.segments import SegmentTable
from tilewright.spec.pe import SEGMENT, SegmentElement
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

PARAMS = PE_PRESETS["unit"]
SEED = 5
NONE = {"element": 0, "rank": 1, "swizzle": 0, "paged": 0, "first_entry": 0, "base": 0, "size": [0] * 4,
        "page_log2": [0] * 4}  # fmt: skip


def pack(segment):
    word = segment.get("reserved", 0)
    for field in SEGMENT.fields:
        values = segment[field.name] if field.count else [segment[field.name]]
        for lsb, value in zip(field.lsbs, values, strict=True):
            word |= (value - field.bias) << lsb
    return word


def pages_of(segment):
    """Pages of each dimension that is used."""
    sizes = zip(segment["size"], segment["page_log2"], strict=True)
    return [-(-size // (1 << log2)) for size, log2 in sizes][: segment["rank"]]


def good(segment):
    """The rules, as docs/pe.md has them."""
    rank, size, log2 = segment["rank"], segment["size"], segment["page_log2"]
    if segment.get("reserved") or segment["element"] not in list(SegmentElement):
        return False
    if not all(size[:rank]) or any(size[rank:]) or any(log2[rank:]):
        return False
    element = 1 << (segment["element"] & 3)
    if element << log2[0] < 16 or element << sum(log2) > 1 << 20:
        return False
    if not segment["paged"]:
        beyond = any(n > 1 << k for n, k in zip(size, log2, strict=True) if n)
        return not beyond and segment["base"] % 16 == 0 and segment["first_entry"] == 0
    count = 1
    for pages in pages_of(segment):
        count *= pages
    return segment["base"] == 0 and segment["first_entry"] + count <= PARAMS.pages


def random_good(rng):
    """A segment without a mistake."""
    while True:
        rank = rng.randint(1, 4)
        log2 = [rng.randint(0, 7) for _ in range(rank)] + [0] * (4 - rank)
        paged = rng.getrandbits(1)
        size = [rng.randint(1, (1 << k) * (rng.choice([1, 1, 2, 3, 40]) if paged else 1)) for k in log2[:rank]]
        segment = {
            "element": rng.choice(list(SegmentElement)),
            "rank": rank,
            "swizzle": rng.randrange(4),
            "paged": paged,
            "first_entry": rng.randrange(PARAMS.pages) if paged else 0,
            "base": 0 if paged else 16 * rng.getrandbits(28),
            "size": size + [0] * (4 - rank),
            "page_log2": log2,
        }
        if good(segment):
            return segment


def random_segment(rng):
    """Half of them with something changed, which may or may not be a mistake."""
    segment = random_good(rng)
    if rng.getrandbits(1):
        name = rng.choice(["element", "rank", "paged", "first_entry", "base", "size", "page_log2", "reserved"])
        if name in ("size", "page_log2"):
            place = rng.randrange(4)
            segment[name][place] = rng.choice([0, 1, segment[name][place] + 1, rng.randrange(16)]) % 16
        elif name == "reserved":
            segment["reserved"] = 1 << rng.choice([9, 15, 144, 255])
        elif name == "rank":
            segment["rank"] = rng.randint(1, 4)
        else:
            segment[name] = {
                "element": rng.randrange(16),
                "paged": 1 - segment["paged"],
                "first_entry": rng.choice([1, PARAMS.pages, 0x8000 + segment["first_entry"]]),
                "base": rng.choice([8, 16, 1 << 31]),
            }[name]
    return segment


def expected(segment):
    """The entry of a segment without a mistake."""
    pages = [*pages_of(segment), 1, 1, 1]
    log2 = segment["page_log2"]
    return {
        "good": 1,
        "element_log2": segment["element"] & 3,
        "signed": segment["element"] in (SegmentElement.S8, SegmentElement.S16, SegmentElement.S32),
        "rank": segment["rank"] - 1,
        "swizzle": segment["swizzle"],
        "paged": segment["paged"],
        "first_entry": segment["first_entry"],
        "base": segment["base"] >> 4,
        "size": segment["size"],
        "page_log2": log2,
        "pages_below": [pages[0], pages[0] * pages[1], pages[0] * pages[1] * pages[2]],
        "shift": [(segment["element"] & 3) + sum(log2[:d]) for d in (1, 2, 3)],
    }


def write_and_read(segments):
    """Entries of ``segments``, each written and read in the next cycle; and the cycles of the writes."""
    dut = elaborated(SegmentTable, PARAMS)
    rng = random.Random(SEED)
    entries, cycles = [], []

    async def bench(ctx):
        for segment in segments:
            index = rng.randrange(PARAMS.segments)
            cycles.append((await send(ctx, dut.writes, [{"index": index, "word": pack(segment)}]))[0])
            ctx.set(dut.read.number, index)
            await ctx.tick()
            ctx.set(dut.read.number, rng.randrange(PARAMS.segments))
            entries.append(ctx.get(dut.read.entry))

    simulate(dut, bench, deadline=100_000)
    return entries, cycles


def test_segments_are_judged_and_derived():
    rng = random.Random(SEED)
    segments = [random_segment(rng) for _ in range(800)]
    entries, cycles = write_and_read(segments)
    wrong = 0
    for segment, entry in zip(segments, entries, strict=True):
        assert entry.good == good(segment), segment
        wrong += not good(segment)
        if entry.good:
            assert entry == entry.shape().const(expected(segment)), segment
    assert 100 < wrong < 400
    assert set(cycles[1:]) == {6}


#: What is different from a good segment, and whether it is still good.
LIMITS = [
    ({}, True),
    ({"size": [65535, 0, 0, 0]}, False),  # more than the page
    ({"size": [65535, 0, 0, 0], "paged": 1, "base": 0}, False),  # 4096 pages
    ({"size": [16 * PARAMS.pages, 0, 0, 0], "paged": 1, "base": 0}, True),  # all there are
    ({"size": [16 * PARAMS.pages + 1, 0, 0, 0], "paged": 1, "base": 0}, False),
    ({"size": [16 * PARAMS.pages, 0, 0, 0], "paged": 1, "base": 0, "first_entry": 1}, False),
    ({"size": [65535] * 4, "rank": 4, "paged": 1, "base": 0}, False),  # a product that is 0 modulo 2^48 or so
    ({"size": [16, 4096, 4096, 256], "rank": 4, "paged": 1, "base": 0}, False),
    ({"page_log2": [3, 0, 0, 0], "size": [8, 0, 0, 0]}, False),  # 8 bytes a row
    ({"page_log2": [3, 0, 0, 0], "size": [8, 0, 0, 0], "element": SegmentElement.F16}, True),
    ({"page_log2": [15, 5, 0, 0], "size": [1, 1, 0, 0], "rank": 2}, True),  # 1 MiB
    ({"page_log2": [15, 6, 0, 0], "size": [1, 1, 0, 0], "rank": 2}, False),
    ({"page_log2": [15, 15, 15, 15], "size": [1, 1, 1, 1], "rank": 4}, False),
    ({"base": 0xFFFFFFF0}, True),
    ({"base": 0xFFFFFFF8}, False),
    ({"size": [0, 0, 0, 0]}, False),
    ({"size": [16, 1, 0, 0]}, False),
    ({"size": [16, 0, 0, 0], "rank": 2}, False),
    ({"element": 3}, False),
    ({"element": 12}, False),
]


def test_limits():
    base = NONE | {"size": [16, 0, 0, 0], "page_log2": [4, 0, 0, 0], "base": 0x100}
    segments = [base | change for change, _ in LIMITS]
    entries, _ = write_and_read(segments)
    for segment, entry, (_, right) in zip(segments, entries, LIMITS, strict=True):
        assert entry.good == good(segment) == right, segment


def test_wrong_until_written_after_every_reset():
    reset = Signal()
    table = SegmentTable(PARAMS)
    segment = NONE | {"size": [16, 0, 0, 0], "page_log2": [4, 0, 0, 0]}

    async def bench(ctx):
        for _ in range(2):
            for number in range(PARAMS.segments):
                ctx.set(table.read.number, PARAMS.segments - 1 - number)
                await ctx.tick()
                assert not ctx.get(table.read.entry.good)
            await ctx.tick().repeat(2)
            await send(ctx, table.writes, [{"index": 5, "word": pack(segment)}])
            for number in range(PARAMS.segments):
                ctx.set(table.read.number, number)
                await ctx.tick()
                assert ctx.get(table.read.entry.good) == (number == 5)
            ctx.set(reset, 1)
            ctx.set(table.read.number, 5)
            await ctx.tick()
            ctx.set(reset, 0)

    simulate(ResetInserter(reset)(table), bench)
