"""Which columns and words are on, and their errors; one item a cycle."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from support.streams import transact
from tilewright.hw.pe.address.columns import Columns
from tilewright.hw.pe.layouts import JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PeError
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES, set_together

SEED = 20261121
PARAMS = PE_PRESETS["unit"].replace(threads=21)
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))
LATENCY = 3


def random_item(rng):
    thread = rng.randrange(PARAMS.threads)
    present = (1 << min(rng.randint(1, LANES), PARAMS.threads - thread)) - 1
    kind, element_log2 = rng.choice(list(JobKind)), rng.randrange(3)
    if kind == JobKind.MULTIPLY:
        element_log2 = min(element_log2, 1)
    job = {"kind": kind, "guard": rng.randrange(2), "predicate": rng.randrange(8), "ka": 0, "transpose": 0}
    if kind == JobKind.MULTIPLY:
        job |= {"ka": rng.randrange(4), "transpose": rng.randrange(2)}
    job["segment"] = {"element_log2": element_log2, "size": [rng.choice([3, 40, 65535]), 0, 0, 0]}
    imm = rng.choice([0, 4, 8, (1 << 32) - 8])
    register = rng.choice([0, PARAMS.regs - 5, PARAMS.regs - 1, PARAMS.regs, 65536])
    return {"job": job, "imm": imm, "register": register, "thread": thread, "present": present}


def wanted_column(item, column, basis, predicates):
    """on, inside, code."""
    job, size = item["job"], item["job"]["segment"]["size"][0]
    element_bytes = 1 << job["segment"]["element_log2"]
    taking_part = item["present"] >> column & 1 and (not job["guard"] or predicates >> job["predicate"] & 1)
    first = (basis["inner"] + item["imm"]) % (1 << 32)
    inside = basis["inside"] and first < size
    multiplies = job["kind"] == JobKind.MULTIPLY
    granule = (PARAMS.unit_bytes if multiplies else 4) // element_bytes
    touched = taking_part and inside
    if not multiplies:
        touched = taking_part and basis["inside"] and any((first + e) % (1 << 32) < size for e in range(granule))
    code = PeError.NONE
    if touched and multiplies and item["register"] + column // (job["ka"] + 1) >= PARAMS.regs:
        code = PeError.PRODUCT
    elif touched and first % granule and not job["transpose"]:
        code = PeError.ALIGNMENT
    on = touched or (job["kind"] == JobKind.LOAD and taking_part)
    return int(bool(on)), int(bool(inside)), code


def adjoin(basis, following, item):
    """Whether the second one is the next element of the same 16 bytes."""
    first, second = ((start["inner"] + item["imm"]) % (1 << 32) for start in (basis, following))
    same = all(basis[name] == following[name] for name in ("outer", "page", "offset"))
    elements = 16 >> item["job"]["segment"]["element_log2"]
    return same and second == first + 1 and first // elements == second // elements


@pytest.mark.parametrize(
    ("mode", "params"), [*((mode, PARAMS) for mode in STALL_MODES), ("none", PACED), ("both", PACED)]
)
def test_columns(mode, params):
    dut = elaborated(Columns, params)
    rng = random.Random(f"{SEED} {mode}")
    bases = [
        {
            "inner": rng.choice([8 * rng.randrange(6), rng.randrange(48), (1 << 32) - rng.randint(1, 9)]),
            "outer": rng.getrandbits(16),
            "page": rng.randrange(PARAMS.pages),
            "offset": rng.getrandbits(20),
            "inside": int(rng.random() < 0.8),
        }
        for _ in range(LANES * PARAMS.groups)
    ]
    for before, basis in pairwise(bases):
        if rng.random() < 0.7:
            basis |= before | {"inner": (before["inner"] + rng.choice([1, 1, 1, 2])) % (1 << 32)}
    predicates = [rng.getrandbits(8) for _ in bases]
    items = [random_item(rng) for _ in range(150)]

    async def memories(ctx):
        sampled = (dut.bases.enable, dut.predicates.predicate, *dut.bases.groups)
        async for _, _, enable, predicate, *groups in ctx.tick().sample(*sampled):
            if enable:
                rows, values = [], 0
                for lane, group in enumerate(groups):
                    thread = (LANES * group + lane) % len(bases)
                    rows.append((dut.bases.rows[lane], bases[thread]))
                    values |= (predicates[thread] >> predicate & 1) << lane
                set_together(ctx, (dut.predicates.values, values), *rows)

    payloads, cycles = transact(dut, {"i": items}, {"o": len(items)}, mode, background=[memories])
    codes, adjoining = set(), Counter()
    for item, given in zip(items, payloads["o"], strict=True):
        assert (given.item.thread, given.item.imm) == (item["thread"], item["imm"])
        threads = [(item["thread"] + column) % len(bases) for column in range(LANES)]
        for number, (thread, column) in enumerate(zip(threads, given.columns, strict=True)):
            basis = bases[thread]
            assert (column.on, column.inside, column.code) == wanted_column(item, number, basis, predicates[thread])
            codes.add(column.code)
            if column.on and column.inside:
                assert column.inner == (basis["inner"] + item["imm"]) % (1 << 32)
                assert all(column[name] == basis[name] for name in ("page", "offset"))
                assert given.outers[thread % LANES] == basis["outer"]
        for number, pair in enumerate(pairwise(threads)):
            inside = all(given.columns[place].inside for place in (number, number + 1))
            if inside and item["job"]["kind"] == JobKind.MULTIPLY:
                adjoins = given.adjoins >> number & 1
                assert adjoins == adjoin(*(bases[thread] for thread in pair), item)
                adjoining[adjoins] += 1
    assert min(adjoining[0], adjoining[1]) > 20
    assert codes == {PeError.NONE, PeError.PRODUCT, PeError.ALIGNMENT}
    if mode == "none":
        pace = 2 if params.paced else 1
        assert cycles["o"] == list(range(LATENCY, LATENCY + pace * len(items), pace))
