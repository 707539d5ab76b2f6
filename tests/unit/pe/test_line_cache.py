"""Line cache: columns come out of rows, for every unit size and sharing."""

import random

from support.selection import cases
from tilewright.hw.pe.line_cache import LineCache
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

SEED = 21
#: Positions that unit q of a column lies further on than unit 0.
AHEAD = (0, 4, 2, 6)


def with_positions(pick, unit_bytes):
    """A pick with the positions of all lanes, and the place of the unit in each position."""
    kb, first, size = pick["kb"] + 1, pick["place"] >> pick["wide"], pick["wide"] + 1
    positions = [(first + lane // kb + AHEAD[lane % kb]) % 8 for lane in range(8)]
    places = [{"share": 0, "octet": 0}] * 8
    for lane in range(8 // kb * kb):
        column, unit = divmod(lane, kb)
        octet, share = divmod(unit, 8 * size // unit_bytes)
        if size == 1:
            share = 2 * share + ((pick["place"] + column) % 16 >> 3)
        places[positions[lane]] = {"share": share, "octet": octet}
    return pick | {"positions": positions, "places": places}


def picked(blocks, pick, unit_bytes):
    """Units by lane, as far as they belong to a whole column; ``blocks[slot][row]`` is 16 bytes."""
    kb, size = pick["kb"] + 1, 2 if pick["wide"] else 1
    k, units = unit_bytes // size, []
    for lane in range(8 // kb * kb):
        column, unit = divmod(lane, kb)
        place = (pick["place"] + column * size) % 16
        rows = blocks[pick["slot"]][unit * k : unit * k + k]
        units.append(int.from_bytes(b"".join(row[place : place + size] for row in rows), "little"))
    return units


@cases("factor_regs, ways", [(2, 8), (2, 4)], [(1, 8)])
def test_random(factor_regs, ways):
    rng = random.Random(SEED)
    params = PeParams(factor_regs=factor_regs, smem=SmemParams(1024, chunks_a_cycle=ways))
    dut = elaborated(LineCache, params)
    blocks, wide = [[bytes(16)] * 32 for _ in range(2)], [0, 0]

    def fills():
        """Blocks of one element size after the other, and now and then an octet of a block again."""
        for _ in range(16):
            slot, size = rng.randrange(2), rng.randrange(2)
            wide[slot] = size
            octets = range(params.unit_bytes // (2 << size) or 1)
            for octet in [*octets, rng.choice(octets)]:
                yield slot, octet

    def matches(ctx, pick):
        for lane, unit in enumerate(picked(blocks, pick, params.unit_bytes)):
            part, way = divmod(lane, ways)
            ctx.set(dut.pick, part_of(pick, part))
            inside = sum(0xFF << 8 * byte for byte in range(params.unit_bytes) if ctx.get(dut.inside[way]) >> byte & 1)
            half = pick["positions"][lane] >> 2
            assert ctx.get(dut.units[way][half]) & inside == unit, f"lane {lane} of {pick}"

    def part_of(pick, part):
        return pick | {"part": part, "positions": pick["positions"][part * ways :][:ways]}

    async def end_fill(ctx):
        await ctx.tick().until(dut.fill.ready)
        ctx.set(dut.fill.valid, 0)
        # What comes without being valid changes nothing.
        ctx.set(dut.fill.payload, {"slot": rng.randrange(2), "octet": rng.randrange(4), "rows": [0] * 8})

    async def drive(ctx):
        filled, early = [set(), set()], set()
        for slot, octet in fills():
            rows = [rng.randbytes(16) for _ in range(8)]
            enable = rng.choice([0xFF, 0x0F, rng.getrandbits(8)])
            fill = {"slot": slot, "octet": octet, "wide": wide[slot], "enable": enable}
            ctx.set(dut.fill.payload, fill | {"rows": [int.from_bytes(row, "little") for row in rows]})
            ctx.set(dut.fill.valid, 1)
            await ctx.tick()
            filling = True
            blocks[slot][8 * octet : 8 * octet + 8] = [
                row if enable >> n & 1 else bytes(16) for n, row in enumerate(rows)
            ]
            filled[slot] = filled[slot] | {octet} if octet else {0}
            for _ in range(12):
                place = rng.choice([0, rng.randrange(0, 16, wide[slot] + 1)])
                pick = {"slot": slot, "kb": rng.randrange(4), "wide": wide[slot], "place": place}
                pick = with_positions(pick, params.unit_bytes)
                rows_needed = (pick["kb"] + 1) * params.unit_bytes >> wide[slot]
                if (rows_needed - 1) // 8 > max(filled[slot]):
                    continue
                ctx.set(dut.pick, part_of(pick, 0))
                if ctx.get(dut.pickable):
                    early.add(filling)
                    matches(ctx, pick)
                slot = rng.choice([s for s in range(2) if filled[s]])
                if filling and rng.random() < 0.3:
                    await end_fill(ctx)
                    filling = False
            if filling:
                await end_fill(ctx)
        assert len(early) == factor_regs

    simulate(dut, drive)


@cases("factor_regs", [2], [1])
def test_rate(factor_regs):
    """An octet in as many cycles as it has shares; the first of two is enough for columns from place 0 on."""
    params = PeParams(factor_regs=factor_regs, smem=SmemParams(1024))
    dut = elaborated(LineCache, params)

    async def source(ctx):
        fill = {"slot": 0, "octet": 0, "wide": 0, "enable": 0xFF, "rows": [0] * 8}
        shares = 16 // params.unit_bytes
        assert await send(ctx, dut.fill, [fill] * 4) == [(n + 1) * shares - 1 for n in range(4)]
        ctx.set(dut.fill.valid, 1)
        await ctx.tick()
        for wide, kb, place, early in ((0, 3, 0, 1), (0, 0, 1, 0), (1, 0, 14, 1), (1, 1, 0, 0)):
            ctx.set(dut.pick, {"slot": 0, "kb": kb, "wide": wide, "place": place})
            assert ctx.get(dut.pickable) == (early and factor_regs == 2)

    simulate(dut, source)
