"""Checks of words and of ranges agree with the golden model."""

import random

import pytest

from tilewright.golden import conv_words
from tilewright.golden.core.processor import check_range, check_word, kind_of
from tilewright.golden.tmau.checks import Windows
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.core.program.checks import RangeCheck, WordDecoder
from tilewright.spec.core import ARGUMENTS, PROGRAM_WORDS, Kind, ProgramError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, watch_stream

TWO = CORE_PRESETS["unit"]
THREE = TWO.replace(conv=CONV_UNIT_PRESETS["unit"])


def run(params, items, mode="none"):
    """What the decoder makes of fetched words, and when."""
    dut, out = elaborated(WordDecoder, params), {}

    async def sink(ctx):
        out["items"], out["cycles"] = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=1)

    simulate(
        dut,
        sender(dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1),
        sink,
        background=[watch_stream(dut.o)],
        deadline=20 * len(items) + 50,
    )
    return out["items"], out["cycles"]


def arguments(rng):
    """Of a kernel: few of them."""
    count = rng.choice((0, 1, 4, 8))
    return [rng.getrandbits(32) for _ in range(count)] + [0] * (ARGUMENTS - count)


def near_word(rng):
    """Random fields of a kind, small or large, with up to two bits more."""
    kind = rng.choice(list(Kind))

    def value(field):
        return rng.choice((0, 1, 8, 64, 4, rng.getrandbits(field.width))) % (1 << field.width)

    word = PROGRAM_WORDS[kind].pack(
        **{field.name: value(field) for field in PROGRAM_WORDS[kind].fields if field.name not in ("kind", "argument")},
        **({"argument": arguments(rng)} if kind == Kind.KERNEL else {}),
        kind=kind,
    )
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        word ^= 1 << rng.randrange(512)
    return word


def expected(word, params):
    """The code of a word; ranges are checked later, and what a loop comes to."""
    code = check_word(word, params.conv is not None, params.smem.size_bytes, Windows(), 64) or ProgramError.NONE
    kind = kind_of(word)
    fields = PROGRAM_WORDS[kind].unpack(word) if kind else {}
    if kind == Kind.PE and code == ProgramError.ADDRESS and not fields["address"] % 64:
        return ProgramError.NONE
    if kind == Kind.LOOP and code == ProgramError.NONE:
        return ProgramError.COUNT if not fields["count"] else 0 if fields["back"] else ProgramError.LOOP
    return code


@pytest.mark.parametrize("params", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_words(mode, params):
    rng = random.Random(mode)
    words = [near_word(rng) for _ in range(400)]
    # The words behind one of kind CONV would be its job.
    words = [word for word in words if kind_of(word) != Kind.CONV]
    items, _ = run(params, [{"word": word} for word in words], mode)
    seen = set()
    for word, item in zip(words, items, strict=True):
        assert item.word == word and item.tag == word >> 16 & 0xFFFF and item.kind == word >> 508
        assert item.code == expected(word, params), hex(word)
        seen.add(item.code)
    assert len(seen) >= 7, seen


def test_jobs():
    """Whatever a job is, the word behind it is looked at."""
    rng = random.Random(1)
    words = [word for _ in range(20) for word in [*conv_words(rng.getrandbits(1024)), 0]]
    items, cycles = run(THREE, [{"word": word} for word in words])
    assert [item.code for item in items] == 20 * [0, 0, 0, ProgramError.KIND]
    assert [item.tag for item in items[1::4]] == 20 * [0]
    assert cycles[-1] - cycles[0] == 2 * (len(words) - 1), "a word every second cycle"


def test_a_word_that_did_not_come():
    (item,), cycles = run(THREE, [{"word": -1 % (1 << 512), "code": ProgramError.BUS}])
    assert (item.code, item.tag) == (ProgramError.BUS, 0)
    assert cycles == [1], "latency"


def test_drop():
    """What is held goes, and also that a job was expected."""
    dut = elaborated(WordDecoder, THREE)

    async def bench(ctx):
        await send(ctx, dut.i, [{"word": conv_words(0)[0]}])
        assert ctx.get(dut.o.valid) and ctx.get(dut.operands) == 2
        ctx.set(dut.drop, 1)
        await ctx.tick()
        ctx.set(dut.drop, 0)
        assert not ctx.get(dut.o.valid)
        await send(ctx, dut.i, [{"word": 0}])
        assert ctx.get(dut.o.payload.code) == ProgramError.KIND

    simulate(dut, bench)


@pytest.mark.parametrize("confine", [0, 1])
@pytest.mark.parametrize("addr_width", [16, 32, 64])
def test_ranges(addr_width, confine):
    dut, rng = elaborated(RangeCheck, addr_width), random.Random(addr_width)
    pages = 1 << addr_width - 12
    seen = set()

    async def bench(ctx):
        for _ in range(150):
            first, last = sorted(rng.choice((0, 1, 3, pages - 1, rng.randrange(pages))) for _ in range(2))
            edges = (64 * first, 64 * last + 64, 1 << addr_width - 6, 1 << 57, rng.getrandbits(58))
            line = max(0, min(rng.choice(edges) + rng.randrange(-3, 4), (1 << 58) - 1))
            lines = rng.choice((0, 1, 2, 64, rng.getrandbits(32)))
            window = Windows((4096 * first, 4096 * last)) if confine else Windows()
            ctx.set(dut.window, {"confine": confine, "first": first, "last": last})
            ctx.set(dut.line, line)
            ctx.set(dut.lines, lines)
            ctx.set(dut.go, 1)
            await ctx.tick()
            ctx.set(dut.go, 0)
            await ctx.tick().repeat(2)
            assert not ctx.get(dut.done)
            await ctx.tick()
            assert ctx.get(dut.done)
            wanted = check_range(64 * line, 64 * lines, window, addr_width) or 0
            assert ctx.get(dut.code) == wanted, (line, lines, first, last)
            seen.add(wanted)

    simulate(dut, bench)
    assert len(seen) == (3 if confine else 2)
