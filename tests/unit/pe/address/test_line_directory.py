"""The directory fills what it does not hold and picks what it holds; an access a cycle."""

import random

import pytest

from tilewright.golden.spec.pe.errors import PeError
from tilewright.hw.pe.address.line_directory import LineDirectory
from tilewright.hw.pe.layouts import AccessKind, JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.pe_accesses import BlockDirectory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121


def random_part(rng):
    kind = rng.choice([JobKind.MULTIPLY] * 6 + [JobKind.LOAD, JobKind.STORE])
    transpose = int(kind == JobKind.MULTIPLY and rng.random() < 0.9)
    leader = {"inner": rng.choice([0, 1, 9, 16]), "outer": 4, "page": 0, "offset": 0, "on": 1}
    if rng.random() < 0.3:
        leader[rng.choice(["outer", "page", "offset"])] = 5
    leader["code"] = PeError.PRODUCT if rng.random() < 0.1 else PeError.NONE
    number = rng.choice([0, 0, 0, 1])
    job = {"kind": kind, "transpose": transpose, "segment_number": number, "kb": rng.choice([0, 0, 3])}
    # Segment 1 has the wider elements.
    job |= {"segment": {"element_log2": number}, "flush": int(rng.random() < 0.1)}
    item = {"job": job, "last": rng.randrange(2)}
    return {"item": item, "leader": leader, "on": int(rng.random() < 0.9)}


def accesses_of(params, part, directory):
    """kind, slot, octet, last, flush."""
    item, leader = part["item"], part["leader"]
    job = item["job"]
    if job["flush"]:
        directory.forget()
    accesses = []
    if job["kind"] == JobKind.MULTIPLY:
        if job["transpose"] and part["on"] and not leader["code"]:
            chunk = (leader["inner"] << job["segment"]["element_log2"]) // 16
            outer = (leader["outer"], leader["page"], leader["offset"])
            slot, fills = directory.find((job["segment_number"], job["kb"], chunk, outer))
            rows = (job["kb"] + 1) * (params.unit_bytes >> job["segment"]["element_log2"])
            if fills:
                accesses = [(AccessKind.FILL, slot, octet) for octet in range(-(-rows // 8))]
            accesses.append((AccessKind.PICK, slot, 0))
        else:
            accesses = [(AccessKind.COLUMNS, None, None)]
    else:
        accesses = [(AccessKind.LOAD if job["kind"] == JobKind.LOAD else AccessKind.STORE, None, None)]
    if job["kind"] == JobKind.STORE:
        directory.forget()
    flags = [(int(item["last"] and n == len(accesses) - 1), int(job["flush"] and n == 0)) for n in range(len(accesses))]
    return [access + flag for access, flag in zip(accesses, flags, strict=True)]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("factor_regs", [1, 2])
def test_accesses(mode, factor_regs):
    params = PE_PRESETS["unit"].replace(factor_regs=factor_regs)
    dut = elaborated(LineDirectory, params)
    rng = random.Random(f"{SEED} {mode}")
    parts = [random_part(rng) for _ in range(150)]
    directory = BlockDirectory()
    wanted = [access for part in parts for access in accesses_of(params, part, directory)]
    picks, fills = ([access[0] for access in wanted].count(kind) for kind in (AccessKind.PICK, AccessKind.FILL))
    assert picks > 50
    assert fills > 30

    async def source(ctx):
        await send(ctx, dut.i, parts, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        got, taken = await receive(ctx, dut.o, len(wanted), stall=STALL_MODES[mode]["stall"], seed=SEED)
        for (kind, slot, octet, last, flush), access in zip(wanted, got, strict=True):
            item = access.part.item
            assert (access.kind, item.last, item.job.flush) == (kind, last, flush)
            if slot is not None:
                assert access.slot == slot
            if kind == AccessKind.FILL:
                assert access.octet == octet
        if mode == "none":
            assert taken == list(range(1, 1 + len(wanted)))

    print(f"seed {SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o)])
