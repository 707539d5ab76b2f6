"""Line cache: columns come out of rows, for every unit size and sharing."""

import random

import pytest

from tilewright.hw.pe.memory.line_cache import LineCache
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 21


def picked(blocks, pick, unit_bytes):
    """Units by lane, as far as they belong to a whole column; ``blocks[slot][row]`` is 16 bytes."""
    kb, size = pick["kb"] + 1, 2 if pick["wide"] else 1
    k, units = unit_bytes // size, []
    for lane in range(8 // kb * kb):
        first = lane % kb * k
        place = pick["bytes"][lane]
        rows = blocks[pick["slot"]][first : first + k]
        units.append(int.from_bytes(b"".join(row[place : place + size] for row in rows), "little"))
    return units


def random_pick(rng):
    wide = rng.randrange(2)
    kb = rng.randrange(4)
    places = [rng.randrange(0, 16, wide + 1) for _ in range(8)]
    # Lanes of one column name one place.
    return {
        "slot": rng.randrange(2),
        "kb": kb,
        "wide": wide,
        "bytes": [places[lane // (kb + 1)] for lane in range(8)],
    }


@pytest.mark.parametrize("factor_regs", [1, 2])
def test_random(factor_regs):
    rng = random.Random(SEED)
    params = PeParams(factor_regs=factor_regs, smem=SmemParams(1024))
    dut = elaborated(LineCache, params)
    octets = params.unit_bytes // 2
    blocks = [[bytes(16)] * 32 for _ in range(2)]

    async def drive(ctx):
        # One octet comes in each cycle; in the next one it can be picked.
        for step in range(120):
            slot, octet = rng.randrange(2), rng.choice([0, *range(octets)])
            if step < 2 * octets:
                slot, octet = divmod(step, octets)
            rows = [rng.randbytes(16) for _ in range(8)]
            enable = rng.choice([0xFF, 0x0F, rng.getrandbits(8)])
            filled = rng.random() < 0.8 or step < 2 * octets
            ctx.set(
                dut.fill.payload,
                {
                    "slot": slot,
                    "octet": octet,
                    "enable": enable,
                    "rows": [int.from_bytes(row, "little") for row in rows],
                },
            )
            ctx.set(dut.fill.valid, filled)
            await ctx.tick()
            if filled and octet == 0:
                blocks[slot] = [bytes(16)] * 32
            if filled:
                blocks[slot][8 * octet : 8 * octet + 8] = [
                    row if enable >> n & 1 else bytes(16) for n, row in enumerate(rows)
                ]
            for _ in range(3):
                pick = random_pick(rng)
                ctx.set(dut.pick, pick)
                for lane, unit in enumerate(picked(blocks, pick, params.unit_bytes)):
                    assert ctx.get(dut.units[lane]) == unit, f"lane {lane} of {pick}"

    simulate(dut, drive)
