"""Parts of items of transposed mm, each column in one part; and accesses, which fill blocks and pick from them."""

import random
from itertools import pairwise

import pytest

from support.pe_accesses import BlockDirectory
from support.streams import transact
from tilewright.hw.pe.address.blocks import BlockParts, LineDirectory
from tilewright.hw.pe.layouts import AccessKind, JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PeError
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 20261121
PARAMS = PE_PRESETS["unit"].replace(threads=16)


def random_item(rng):
    inner = rng.randrange(1 << 16)
    columns = [
        {
            "inner": (inner + rng.choice([0, number, number, number, 15])) % (1 << 16),
            "page": int(rng.random() < 0.1),
            "offset": int(rng.random() < 0.1),
            "on": int(rng.random() < 0.7),
            "inside": 1,
        }
        for number in range(LANES)
    ]
    for column in columns:
        column["code"] = PeError.PRODUCT if column["on"] and rng.random() < 0.1 else PeError.NONE
    if rng.random() < 0.1:
        columns = [column | {"on": 0, "code": PeError.NONE} for column in columns]
    job = {"transpose": rng.randrange(2), "flush": rng.randrange(2), "segment": {"element_log2": rng.randrange(2)}}
    item = {"job": job, "last": rng.randrange(2), "thread": rng.randrange(1 << PARAMS.thread_width)}
    given = {"item": item, "columns": columns, "outers": [int(rng.random() < 0.1) for _ in range(LANES)]}
    blocks = [block_of(given, number) for number in range(LANES)]
    return given | {"adjoins": sum((one == two) << n for n, (one, two) in enumerate(pairwise(blocks)))}


def block_of(given, number):
    """What is the same for columns that lie side by side."""
    column = given["columns"][number]
    chunk = (column["inner"] << given["item"]["job"]["segment"]["element_log2"]) // 16
    return chunk, outer_of(given, number), column["page"], column["offset"], column["inner"] - number


def outer_of(given, number):
    return given["outers"][(given["item"]["thread"] + number) % LANES]


def parts_of(given):
    """on, leader's number, last and flush of each part."""
    item, groups, run = given["item"], {}, 0
    before = None  # where the column before is, if it is on
    for number, column in enumerate(given["columns"]):
        block = block_of(given, number)
        run += block != before or not column["on"]
        before = block if column["on"] else None
        if column["on"]:
            key = None if not item["job"]["transpose"] else column["code"] or (run,)
            groups.setdefault(key, []).append(number)
    parts = list(groups.values()) or [[]]
    return [
        (
            sum(1 << number for number in part),
            part[0] if part else None,
            int(item["last"] and position == len(parts) - 1),
            int(item["job"]["flush"] and position == 0),
        )
        for position, part in enumerate(parts)
    ]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_parts(mode):
    rng = random.Random(f"{SEED} {mode}")
    items = [random_item(rng) for _ in range(100)]
    wanted = [(given, part) for given in items for part in parts_of(given)]
    assert len(wanted) > 1.5 * len(items)
    payloads, cycles = transact(elaborated(BlockParts, PARAMS), {"i": items}, {"o": len(wanted)}, mode)
    for (given, (on, leader, last, flush)), part in zip(wanted, payloads["o"], strict=True):
        assert (part.on, part.item.last, part.item.job.flush) == (on, last, flush)
        assert part.item.thread == given["item"]["thread"]
        assert [column.inner for column in part.columns] == [column["inner"] for column in given["columns"]]
        if leader is not None:
            assert all(part.leader[name] == value for name, value in given["columns"][leader].items())
            assert part.leader.outer == outer_of(given, leader)
            assert part.origin == (given["columns"][leader]["inner"] - leader) % 16
    if mode == "none":
        assert cycles["o"] == list(range(1, 1 + len(wanted)))


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
    rng = random.Random(f"{SEED} {mode}")
    parts = [random_part(rng) for _ in range(150)]
    directory = BlockDirectory()
    wanted = [access for part in parts for access in accesses_of(params, part, directory)]
    picks, fills = ([access[0] for access in wanted].count(kind) for kind in (AccessKind.PICK, AccessKind.FILL))
    assert picks > 50
    assert fills > 30
    payloads, cycles = transact(elaborated(LineDirectory, params), {"i": parts}, {"o": len(wanted)}, mode)
    for (kind, slot, octet, last, flush), access in zip(wanted, payloads["o"], strict=True):
        item = access.part.item
        assert (access.kind, item.last, item.job.flush) == (kind, last, flush)
        if slot is not None:
            assert access.slot == slot
        if kind == AccessKind.FILL:
            assert access.octet == octet
    if mode == "none":
        assert cycles["o"] == list(range(1, 1 + len(wanted)))
