"""Mixed batches: the same for the same seed, and no command of an epoch touches what another one writes."""

from collections import Counter

import pytest

from tilewright.golden import TensorMap
from tilewright.golden.tmau.tile import extent, footprint
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error, Opcode, Space
from tilewright.verify.compare.mixed_run import run_golden
from tilewright.verify.random.commands import Order
from tilewright.verify.random.mixed import DESCRIPTOR_SLOTS, GLOBAL_BYTES, PAGE, garbage_mixes, random_mixes

SEED = 8
ALONE = (Opcode.LANES, Opcode.REPLACE)
MOVES = (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE, Opcode.COPY_BLOCK)


def test_a_function_of_the_seed():
    params = TMAU_PRESETS["unit"]
    batches = list(random_mixes(SEED, params, 200))
    assert batches == list(random_mixes(SEED, params, 200))
    assert batches != list(random_mixes(SEED + 1, params, 200))
    assert sum(len(batch.orders) for batch in batches) >= 200


def test_the_descriptor_of_an_order():
    tmap = TensorMap(element="u8", size=(64,), box=(16,), address=0x100)
    assert TensorMap.unpack(Order({}, tmap).descriptor(0x4000)).address == 0x4100
    assert Order({}, raw=b"x").descriptor(0x4000) == b"x"
    assert Order({}).descriptor(0) is None


def halves(order, smem_bytes):
    """Which halves of which memory an order may read, and which it may write: pairs of a Space and 0 or 1."""
    fields, opcode, tmap = order.fields, order.fields["opcode"], order.tmap

    def half(space, address, length):
        size = smem_bytes if space else GLOBAL_BYTES
        return {(space, place >= size // 2) for place in (address, address + length - 1) if length}

    if opcode == Opcode.COPY_BLOCK:
        return (half(fields["source_space"], fields["source"], fields["size"]),
                half(fields["destination_space"], fields["destination"], fields["size"]))  # fmt: skip
    tensor = half(Space.GLOBAL, tmap.address, extent(tmap))
    shared = set() if fields.get("fill") else half(Space.SHARED, fields["smem"], footprint(tmap))
    return (tensor, shared) if opcode == Opcode.LOAD else (shared, tensor)


@pytest.mark.parametrize("preset", ["unit", "default"])
def test_epochs_do_not_conflict(preset):
    """What an epoch reads lies in the other half of that memory than what it writes."""
    params = TMAU_PRESETS[preset]
    size, moved = params.smem.size_bytes, 0
    for batch in random_mixes(SEED, params, 800):
        epoch = []
        for order, ending in zip(batch.orders, run_golden(batch, params).endings, strict=True):
            opcode = order.fields["opcode"]
            if opcode != Opcode.WAIT_ALL:
                epoch.append((order, ending))
                continue
            if not any(order.fields["opcode"] in ALONE for order, _ in epoch):
                moves = [halves(order, size) for order, end in epoch if not end and order.fields["opcode"] in MOVES]
                read, written = (set().union(*sides) for sides in zip(*moves, strict=True)) if moves else ((), ())
                assert not set(read) & set(written)
                assert all(len(side) <= 1 for sides in moves for side in sides)
                moved += len(moves)
            epoch = []
    assert moved > 300


def test_windows_refuse_now_and_then():
    """Where a window is, most commands stay inside of it."""
    params = TMAU_PRESETS["default"]
    endings = [
        ending
        for batch in random_mixes(SEED, params, 800)
        if any(batch.windows)
        for ending in run_golden(batch, params).endings
    ]
    refused = endings.count(Error.WINDOW)
    assert 0 < refused < len(endings) / 8
    assert endings.count(Error.NONE) > len(endings) * 2 / 3


PARAMS = TMAU_PRESETS["unit"]


def test_what_it_ends_with():
    batches = list(garbage_mixes(2, PARAMS, 500))
    assert [len(batch.orders) for batch in batches] == [DESCRIPTOR_SLOTS] * 4
    assert batches == list(garbage_mixes(2, PARAMS, 500))
    endings = Counter()
    for batch in batches:
        golden = run_golden(batch, PARAMS)
        endings.update(golden.endings)
        assert (golden.machine.smem[:128] == golden.shared[:128]).all()
        assert (golden.machine.gmem.data[:PAGE] == golden.contents[:PAGE]).all()
    assert 0.1 < endings[Error.NONE] / endings.total() < 0.5
    assert len(endings) > 20
