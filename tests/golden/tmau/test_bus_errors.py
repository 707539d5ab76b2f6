"""Bus errors (docs/tmau.md, "Bus errors"): addresses in records, and the bytes that become open."""

import random

import numpy as np
import pytest

from tilewright.golden import Cluster, Machine, Memory, TensorMap, command_word, delivery_bits
from tilewright.golden.memory import mix_pattern
from tilewright.golden.tmau.bus_errors import failed_read, failed_write
from tilewright.spec import DESCRIPTOR, Element, Error, Opcode

BUS_BYTES = 64
END = 8192 + 1024  # of the memory: in the middle of a page


def rows(length, *starts):
    """Addresses of the bytes of rows."""
    return (np.array(starts, np.uint64)[:, None] + np.arange(length, dtype=np.uint64)).ravel()


#: Bytes in the order in which they are written, and first and last address of the record.
WRITES = {
    "one stretch": (rows(400, END - 300), END - 320, END),
    "from the page's edge on": (rows(2000, 8100), 8192, END),
    "the first byte": (rows(16, END + 80), END + 64, END + 64),
    "apart": (rows(64, END - 256, END - 128, END), END, END),
    "adjoining": (rows(64, END - 128, END - 64, END), END - 128, END),
    "in descending order": (rows(64, END - 64, END - 128, END), END, END),
    "over and over": (rows(32, END - 32, END - 32, END), END - 64, END),
    "the second stretch": (rows(200, 512, END - 100), END - 128, END),
    "the end of all addresses": (rows(32, (1 << 64) - 16), (1 << 64) - 64, (1 << 64) - 64),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_error(name):
    written, first, last = WRITES[name]
    code, address, others = failed_write(Memory(END), written, BUS_BYTES)
    assert (code, address) == (Error.WRITE, last)
    assert [*others, address] == list(range(first, last + 1, BUS_BYTES))


@pytest.mark.parametrize("name", WRITES)
def test_read_error_is_exact(name):
    read, _, last = WRITES[name]
    assert failed_read(Memory(END), read, BUS_BYTES) == (Error.READ, last, range(0))


@pytest.mark.parametrize("failed", [failed_read, failed_write])
@pytest.mark.parametrize("addresses", [rows(32, END - 32), rows(0), rows(16, 4096, 64)], ids=["end", "none", "two"])
def test_no_error(failed, addresses):
    assert failed(Memory(END), addresses, BUS_BYTES) is None


GMEM = SMEM = 4096
#: Two tensors with padding between rows, swizzle and reductions; descriptors lie after all bytes that commands write.
MAPS = (
    TensorMap(element="u32", address=256, size=(32, 8), stride=(160,), box=(16, 4), swizzle="128B"),
    TensorMap(element="tf32", address=1664, size=(16, 6), stride=(64,), box=(16, 6)),
    TensorMap(element="u16", address=0, size=(24, 4, 4), stride=(0, 512), box=(8, 2, 2)),
)
PLACES = [GMEM - DESCRIPTOR.bytes * (number + 1) for number in range(len(MAPS))]
LAST = PLACES[-1]
FAILING = 1 << 20  # beyond memory


def machine():
    gmem = mix_pattern(GMEM, 1)
    for place, tmap in zip(PLACES, MAPS, strict=True):
        gmem[place : place + DESCRIPTOR.bytes] = np.frombuffer(tmap.pack(), np.uint8)
    return Machine(Memory(gmem), mix_pattern(SMEM, 2))


def block(rng, source_space, destination_space, source=None):
    size = 16 * rng.randrange(1, 33)
    reduced = {"reduction": rng.choice(["add", "max", "xor"]), "element": rng.choice(["u32", "s64"])}
    fields = {"source": rng.randrange(0, LAST - size, 16) if source is None else source, "size": size,
              "destination": rng.randrange(0, LAST - size, 16)}  # fmt: skip
    fields |= {"source_space": source_space, "destination_space": destination_space}
    word = fields | (reduced | {"reduction": "max"} if reduced["element"] == "s64" else reduced)
    return command_word("copy_block", **(word if rng.random() < 0.4 else fields))


def tensor(rng):
    number = rng.randrange(len(MAPS))
    tmap = MAPS[number]
    opcode = rng.choice(["load", "store", "reduce"])
    low = -4 if opcode == "load" else 0
    coords = [rng.randrange(low, size) for size in tmap.size]
    more = {"reduction": rng.choice(["add", "max"])} if opcode == "reduce" else {}
    return command_word(opcode, descriptor=PLACES[number], coords=coords + [0] * (5 - tmap.rank),
                        smem=128 * rng.randrange(16), **more)  # fmt: skip


def lanes(rng):
    layouts = rng.choice(
        [("global", "aligned"), ("row_aligned", "global"), ("compact", "compact"), ("aligned", "global")]
    )
    fields = {"element": rng.choice([Element.U16, Element.F32]), "shape": [rng.randrange(1, 6) for _ in range(4)],
              "lanes_log2": 2, "eu_log2": 4}  # fmt: skip
    fields |= {"source_layout": layouts[0], "destination_layout": layouts[1]}
    return command_word("lanes", source=16 * rng.randrange(8), destination=512 + 16 * rng.randrange(8), **fields)


def follow_up(rng):
    spaces = rng.choice([("global", "shared"), ("shared", "global"), ("shared", "shared"), ("global", "global")])
    return rng.choice([lambda: block(rng, *spaces), lambda: tensor(rng), lambda: lanes(rng)])()


def failure(rng):
    return block(rng, "global", rng.choice(["shared", "global"]), FAILING)


@pytest.mark.parametrize("seed", range(60))
def test_other_bytes_do_not_depend_on_open_ones(seed):
    """Two machines differ in what failed commands leave; after further ones they differ in open bytes only."""
    rng, machines = random.Random(seed), [machine(), machine()]
    for word in [failure(rng), failure(rng), *(follow_up(rng) for _ in range(12))]:
        ends = [one.execute(word) for one in machines]
        assert ends[0] == ends[1]
        if machines[0].errors and machines[0].errors[-1].code == Error.READ:
            for number, one in enumerate(machines):
                for memory, marks in ((one.gmem.data, one.gmem.open_bytes), (one.smem, one.open_bytes)):
                    places = np.flatnonzero(marks.at(slice(None)))
                    memory[places] = np.random.default_rng((seed, number)).integers(0, 256, len(places), np.uint8)
                one.errors.clear()
    one, other = machines
    assert one.gmem.open_bytes.undecided is None and one.open_bytes.undecided is None
    for marks, contents in ((one.gmem.open_bytes, other.gmem.data), (one.open_bytes, other.smem)):
        assert not marks.wrong(contents).any()
    assert (one.gmem.data != other.gmem.data).any() or (one.smem != other.smem).any(), "otherwise it shows nothing"


def test_a_failed_load_opens_its_rows_but_not_gaps():
    tmap = TensorMap(element="u8", address=FAILING, size=(32, 2), stride=(64,), box=(32, 2), swizzle="128B")
    model = machine()
    descriptor = int.from_bytes(tmap.pack(), "little")
    assert model.execute_on(descriptor, Opcode.LOAD, coords=(0, 0, 0, 0, 0), smem=256) is None
    marks = np.flatnonzero(model.open_bytes.at(slice(None)))
    # Row 1 begins at 384: address bits 4 to 6 are XORed with bits 7 to 9.
    assert marks.tolist() == sorted(
        [*(256 + (byte ^ 32) for byte in range(32)), *(384 + (byte ^ 48) for byte in range(32))]
    )


#: Memory that ends inside a page, so that a stretch can begin in it and end beyond.
SHORT_END = 3584


def reduced(element, address, rows, stride, count):
    """Memory after a reduction that fails, and before it."""
    tmap = TensorMap(element=element, address=address, size=(count, rows), stride=(stride,), box=(count, rows))
    gmem = Memory(mix_pattern(SHORT_END, 1))
    model, before = Machine(gmem, mix_pattern(SMEM, 2)), gmem.data.copy()
    descriptor = int.from_bytes(tmap.pack(), "little")
    assert model.execute_on(descriptor, Opcode.REDUCE, reduction="add", coords=(0, 0, 0, 0, 0), smem=0) is None
    return gmem, before


@pytest.mark.parametrize("element", ["u32", "u64"])
def test_a_failed_reduction_updates_any_elements_of_its_stretch(element):
    size = Element[element.upper()].bytes
    gmem, before = reduced(element, SHORT_END - 256, 2, FAILING, 256 // size)
    assert not gmem.open_bytes, "the failing row is a stretch of its own"
    gmem, before = reduced(element, SHORT_END - 256, 2, 384, 384 // size)
    new = gmem.data.copy()
    changed = np.arange(SHORT_END - 256, SHORT_END)
    assert (new[: SHORT_END - 256] == before[: SHORT_END - 256]).all() and (
        new[changed] != before[changed]
    ).mean() > 0.5
    mixed = new.copy()
    mixed[SHORT_END - 128 :] = before[SHORT_END - 128 :]
    assert not gmem.open_bytes.wrong(mixed).any() and not gmem.open_bytes.wrong(before).any()
    assert gmem.open_bytes.wrong(new ^ 255).all(), "nothing but one of both"
    torn = new.copy()
    torn[SHORT_END - size : SHORT_END - size + 2] ^= 1
    assert gmem.open_bytes.wrong(torn)[SHORT_END - size]


def test_elements_that_a_failed_reduction_updates_twice_are_open():
    gmem, _ = reduced("u32", SHORT_END - 64, 2, 0, 32)
    assert np.flatnonzero(~gmem.open_bytes.wrong(gmem.data ^ 255)).tolist() == list(range(SHORT_END - 64, SHORT_END))


def test_accepting_receivers_get_open_bytes():
    cluster = Cluster(Memory(GMEM), [np.zeros(SMEM, np.uint8) for _ in range(3)])
    cluster.cores[2].accepts = 0
    word = command_word("copy_block", source=FAILING, destination=64, destination_space="shared", size=32)
    assert cluster.execute(0, word | delivery_bits([0, 1, 2])) is None
    marks = [np.flatnonzero(core.open_bytes.at(slice(None))).tolist() for core in cluster.cores]
    assert marks == [list(range(64, 96)), list(range(64, 96)), []]
    word = command_word("copy_block", source_space="shared", source=64, destination=0, size=16)
    assert cluster.execute(0, word | delivery_bits(source_core=1)) == 16
    assert np.flatnonzero(cluster.cores[0].gmem.open_bytes.at(slice(None))).tolist() == list(range(16))


def test_a_descriptor_and_a_barrier_that_are_open():
    model = machine()
    assert model.execute(command_word("copy_block", source=FAILING, destination=PLACES[0], size=16)) is None
    model.execute(command_word("load", descriptor=PLACES[0], smem=0))
    assert model.gmem.open_bytes.undecided == f"the descriptor at {PLACES[0]:#x} depends on what is open"
    assert (
        model.execute(command_word("copy_block", source=FAILING, destination=64, destination_space="shared", size=16))
        is None
    )
    model.barrier("init", 72, 1)
    assert model.open_bytes.undecided is None and not model.open_bytes.at(np.arange(72, 80)).any()
    model.barrier("arrive", 64, 1)
    assert model.open_bytes.undecided == "the barrier at 0x40 depends on what is open"
