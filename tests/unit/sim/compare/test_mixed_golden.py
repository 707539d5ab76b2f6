"""What golden makes of a mixed batch."""

from dataclasses import replace

from tilewright.golden.spec import DESCRIPTOR, Error, Opcode, Space
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.compare.mixed_golden import BATCH_BYTES, batch_windows, run_golden
from tilewright.sim.random.mixed import GLOBAL_BYTES, PAGE, random_mixes
from tilewright.sim.random.order import Order

PARAMS = TMAU_PRESETS["unit"]
BATCH = next(random_mixes(1, PARAMS, 1))
COPY = {"opcode": Opcode.COPY_BLOCK, "source_space": Space.GLOBAL, "destination_space": Space.SHARED, "source": 0x2000,
        "destination": 0x200, "size": 64}  # fmt: skip


def test_memories_and_endings():
    base = 1 << 20
    orders = (Order(COPY, based=("source",)), Order({"opcode": 15}), Order(COPY | {"size": 8}, based=("source",)))
    golden = run_golden(replace(BATCH, base=base, orders=orders, windows=(False, False)), PARAMS)
    assert golden.endings == [Error.NONE, Error.OPCODE, Error.BLOCK_ALIGNMENT]
    assert golden.commands[0]["source"] == base + 0x2000
    assert len({command["tag"] for command in golden.commands}) == 3
    assert (golden.machine.smem[0x200:0x240] == golden.contents[0x2000:0x2040]).all()
    assert (golden.shared[0x200:0x240] != golden.contents[0x2000:0x2040]).any()
    assert len(golden.contents) == BATCH_BYTES


def test_a_descriptor_is_placed_once():
    load = next(order for order in BATCH.orders if order.fields["opcode"] == Opcode.LOAD and not order.skew)
    golden = run_golden(replace(BATCH, orders=(load, load)), PARAMS)
    assert [command["descriptor"] for command in golden.commands] == [BATCH.base + GLOBAL_BYTES] * 2
    place = slice(GLOBAL_BYTES, GLOBAL_BYTES + DESCRIPTOR.bytes)
    assert golden.contents[place].tobytes() == load.descriptor(BATCH.base)


def test_windows():
    batch = replace(BATCH, windows=(True, False))
    windows = batch_windows(batch, 4096, base=1 << 20)
    assert windows.global_ == ((1 << 20) + PAGE, (1 << 20) + BATCH_BYTES - 1)
    assert windows.shared is None
    assert batch_windows(replace(batch, windows=(False, True)), 4096, base=0).shared == (128, 4095)
