"""Items of transposed mm fall into parts by block; each column is in one part, and an undivided item takes a cycle."""

import random
from itertools import pairwise

import pytest

from tilewright.golden.spec.pe.errors import PeError
from tilewright.hw.pe.address.block_parts import BlockParts
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

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
    dut = elaborated(BlockParts, PARAMS)
    rng = random.Random(f"{SEED} {mode}")
    items = [random_item(rng) for _ in range(100)]
    wanted = [(given, part) for given in items for part in parts_of(given)]
    assert len(wanted) > 1.5 * len(items)

    async def source(ctx):
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        got, taken = await receive(ctx, dut.o, len(wanted), stall=STALL_MODES[mode]["stall"], seed=SEED)
        for (given, (on, leader, last, flush)), part in zip(wanted, got, strict=True):
            assert (part.on, part.item.last, part.item.job.flush) == (on, last, flush)
            assert part.item.thread == given["item"]["thread"]
            assert [column.inner for column in part.columns] == [column["inner"] for column in given["columns"]]
            if leader is not None:
                assert all(part.leader[name] == value for name, value in given["columns"][leader].items())
                assert part.leader.outer == outer_of(given, leader)
                assert part.origin == (given["columns"][leader]["inner"] - leader) % 16
        if mode == "none":
            assert taken == list(range(1, 1 + len(wanted)))

    print(f"seed {SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o)])
