"""Accumulators of a unit: sums modulo 2^32, maxima of elements, and reading beside adding."""

import random

import pytest

from support.conv import conv_unit
from tilewright.hw.conv.array.sums import Sums, SumsReader
from tilewright.hw.conv.params import FOLDS
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 41


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("maximum", [0, 1])
@pytest.mark.parametrize(("lanes", "bits"), [(16, 9), (16, 17), (5, 9), (0, 9)])
def test_sums(lanes, bits, maximum, apart):
    """An addition a cycle, with pauses; what is read is what has been added before this cycle."""
    dut, rng = elaborated(Sums, lanes, bits, single_reads=apart), random.Random(f"{SEED} {lanes} {bits} {maximum}")
    half = 1 << (bits - 1 if maximum else 31)
    kept = range(lanes if maximum else FOLDS)
    model = {}

    async def bench(ctx):
        ctx.set(dut.maximum, maximum)
        for _ in range(250):
            terms = [rng.choice([-half, half - 1, 0, -1, rng.randrange(-half, half)]) for _ in range(FOLDS)]
            address, valid = rng.randrange(8), rng.random() < 0.7
            first = address not in model or rng.random() < 0.1
            read = rng.choice([*model, 0])
            if apart and read == address:
                read = address ^ 1
            values = {"i": terms, "valid": valid, "first": first, "address": address, "read": read}
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            on = rng.getrandbits(FOLDS) if apart else (1 << FOLDS) - 1
            if apart:
                ctx.set(dut.on, on)
            wanted = {
                place: model[read][place] & 0xFFFFFFFF if on >> place & 1 else 0 for place in kept if read in model
            }
            if not apart:
                assert {place: ctx.get(dut.o)[place] for place in wanted} == wanted
            if valid and first:
                model[address] = terms
            elif valid:
                combine = max if maximum else int.__add__
                model[address] = list(map(combine, model[address], terms))
            await ctx.tick()
            if apart:
                assert {place: ctx.get(dut.o)[place] for place in wanted} == wanted

    simulate(dut, bench)
    assert len(model) == 8


READ_SEED = 43
PARAMS = {
    "unit": conv_unit(),
    "as-many": conv_unit(results=2),
    "more": conv_unit(results=8),
    "wide-rows": conv_unit(row_bytes=32, slaves=4, weight_bytes=2048),
}


def wanted(params, job, read, sums):
    """What a transfer holds; None where it may be anything."""
    conv, (lanes, granularity) = params.conv, job
    fold = 16 * (1 << granularity) // conv.row_bytes  # sixteenths of a row that a point takes
    for number in range(conv.results):
        if lanes:
            yield sums[read["part"]][read["index"] + number]
            continue
        slave = (read["part"] * conv.results + number) % conv.slaves
        place = (read["index"] + number // conv.slaves) * fold
        yield sums[slave][place] if place < params.sums else None


@pytest.mark.parametrize("lanes", [0, 1], ids=["convolution", "lanes"])
@pytest.mark.parametrize("name", PARAMS)
def test_every_transfer(name, lanes):
    params, rng = PARAMS[name], random.Random(READ_SEED)
    conv, dut = params.conv, elaborated(SumsReader, params)
    low = conv.row_bytes.bit_length() - 5
    groups = max(1, conv.results // conv.slaves)
    jobs = {}
    for granularity in range(low, low + 5):
        if lanes:
            elements = min(conv.row_bytes, params.sums)
            reads = [(index, part) for index in range(0, elements, conv.results) for part in range(conv.slaves)]
        else:
            places = conv.units * (conv.row_bytes >> granularity)
            parts = range(max(1, conv.slaves // conv.results))
            reads = [(index, part) for index in range(0, places, groups) for part in parts]
        jobs[lanes, granularity] = [{"index": index, "part": part} for index, part in reads]

    async def bench(ctx):
        for job, reads in jobs.items():  # the mode changes between tiles only
            ctx.set(dut.lanes, job[0])
            ctx.set(dut.granularity, job[1])
            pipe = []
            for read in [*reads, *[None] * SumsReader.LATENCY]:
                if len(pipe) == SumsReader.LATENCY:
                    check(ctx, job, *pipe.pop(0))
                sums = [[rng.getrandbits(32) for _ in range(params.sums)] for _ in range(conv.slaves)]
                ctx.set(dut.read, read or {})
                pipe.append((read, sums))
                if not params.single_reads:
                    ctx.set(dut.i, sums)
                    await ctx.tick()
                    continue
                # The slaves answer in the next cycle.
                on = [ctx.get(dut.on[slave]) for slave in range(conv.slaves)]
                await ctx.tick()
                ctx.set(dut.i, [[value * (mask >> place & 1) for place, value in enumerate(row)]
                                for mask, row in zip(on, sums, strict=True)])  # fmt: skip

    def check(ctx, job, read, sums):
        for have, want in zip(ctx.get(dut.o), wanted(params, job, read, sums), strict=True):
            assert want is None or have == want, f"{job} {read}"

    simulate(dut, bench)
