"""Clusters on the golden model: multicast, copies between cores, isolation, remote arrivals (docs/cluster.md)."""

import random

import numpy as np
import pytest

from tilewright.golden import Cluster, Machine, Memory, TensorMap, Windows, command_word, delivery_bits
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.golden.tmau.tile import footprint
from tilewright.spec import COMMAND_FIELD, FORMATS, Error, Opcode
from tilewright.spec.cluster import ClusterError
from tilewright.verify.random.maps import random_start

SMEM, GMEM = 4096, 1 << 16
TILE = TensorMap(element="u8", address=256, size=(64, 64), stride=(64,), box=(16, 8))


def smems(count, size=SMEM):
    return [mix_pattern(size, 10 + core) for core in range(count)]


def cluster_of(count, **options):
    return Cluster(Memory(mix_pattern(GMEM, 1), "global memory"), smems(count), **options)


def unchanged(cluster):
    """Whether all shared memories have their first contents."""
    cores = cluster.cores
    return all((core.smem == before).all() for core, before in zip(cores, smems(len(cores)), strict=True))


def packed_map(tmap):
    return int.from_bytes(tmap.pack(), "little")


def load(smem=0, cores=None, tag=7, **fields):
    return command_word("load", smem=smem, coords=(16, 8, 0, 0, 0), tag=tag, **fields) | delivery_bits(cores)


def copy(source=None, destination=None, size=64, cores=None, source_core=None, **fields):
    """A block copy; a number is an address in shared memory, and None the global address 512."""
    sides = {"source": source, "destination": destination}
    spaces = {f"{side}_space": "global" if place is None else "shared" for side, place in sides.items()}
    places = {side: 512 if place is None else place for side, place in sides.items()}
    word = command_word("copy_block", size=size, tag=7, **spaces, **places, **fields)
    return word | delivery_bits(cores, source_core)


def run(cluster, core, word):
    """Runs a command; loads use the descriptor of ``TILE``."""
    if word & 15 == Opcode.LOAD:
        return cluster.execute_on(core, packed_map(TILE), word)
    return cluster.execute(core, word)


def alone(core, word, descriptor=None):
    """Shared memory of a machine without a cluster after the command, and the bytes of the command."""
    machine = Machine(Memory(mix_pattern(GMEM, 1), "global memory"), mix_pattern(SMEM, 10 + core))
    fields = FORMATS[word & 15].unpack(word)
    opcode = fields.pop("opcode")
    fields.pop("descriptor", None)
    done = machine.execute(word) if descriptor is None else machine.execute_on(descriptor, opcode, **fields)
    return machine.smem, done


@pytest.mark.parametrize("word", [load(256), copy(None, 256), copy(None, 256, reduction="add", element="u32")])
@pytest.mark.parametrize("named", [[0], [1], [0, 2], [1, 3], [0, 1, 2, 3]])
def test_receivers_get_the_data_of_a_core_alone(word, named):
    cluster, descriptor = cluster_of(4), packed_map(TILE) if word & 15 == Opcode.LOAD else None
    word |= delivery_bits(named)
    assert run(cluster, 2, word) == (128 if descriptor else 64)
    for number, core in enumerate(cluster.cores):
        expected = alone(number, word, descriptor)[0] if number in named else smems(4)[number]
        assert (core.smem == expected).all(), number
        assert not core.errors


@pytest.mark.parametrize("count", [2, 4])
def test_random_loads(count):
    """Each receiver gets the data of a core alone, in all modes; other memories do not change."""
    print("seed 15")
    rng, received = random.Random(15), 0
    cluster = cluster_of(count)
    models = [Machine(cluster.cores[0].gmem, smem) for smem in smems(count)]
    for _ in range(150):
        start = random_start(rng, first=0, end=GMEM, most_bytes=SMEM)
        tmap = start.tmap
        room = (SMEM - footprint(tmap)) // 128
        fields = {"smem": 128 * rng.randint(0, room + 1), "coords": start.coords, "offsets": start.offsets}
        issuer, mask = rng.randrange(count), rng.randrange(1, 1 << count)
        word = command_word("load", **fields) | delivery_bits(mask)
        landed = cluster.execute_on(issuer, packed_map(tmap), word)
        for number, model in enumerate(models):
            if mask >> number & 1 and landed is not None:
                assert model.execute_on(packed_map(tmap), **fields) == landed
                received += 1
            assert (cluster.cores[number].smem == model.smem).all()
        if landed is None:
            assert models[issuer].execute_on(packed_map(tmap), **fields) is None
            assert models[issuer].errors[-1] == cluster.cores[issuer].errors[-1]
    assert received > 100 * count / 2


def test_every_receiver_counts_all_bytes():
    cluster = cluster_of(3)
    for core in cluster.cores:
        Barrier(pending=1, expected=1, transactions=0).write(core.smem, 64)
        core.barrier("expect_tx", 64, 128)
        assert core.barrier("arrive", 64, 1) is False
    cluster.execute_on(0, packed_map(TILE), load(256, [1, 2], signal=1, barrier=64))
    assert [Barrier.read(core.smem, 64).phase for core in cluster.cores] == [0, 1, 1]
    assert [Barrier.read(core.smem, 64).transactions for core in cluster.cores] == [128, 0, 0]


def test_a_barrier_overflow_is_recorded_by_its_core():
    cluster = cluster_of(2)
    Barrier(pending=1, expected=1, transactions=-(1 << 20) + 1).write(cluster.cores[1].smem, 64)
    Barrier(pending=1, expected=1).write(cluster.cores[0].smem, 64)
    assert cluster.execute_on(0, packed_map(TILE), load(256, [0, 1], signal=1, barrier=64)) == 128
    assert not cluster.cores[0].errors
    assert [error.code for error in cluster.cores[1].errors] == [Error.BARRIER_OPERATION]


@pytest.mark.parametrize(
    "word",
    [
        load(0, 0), load(0, [0, 2]), load(0, 1 << 15), copy(None, 0, cores=0), copy(0, 256, cores=[3]),
        copy(0, None, source_core=2), copy(0, 256, source_core=15),
    ],
)  # fmt: skip
def test_missing_cores_are_refused(word):
    cluster = cluster_of(2)
    assert run(cluster, 1, word) is None
    assert cluster.cores[1].errors == [(ClusterError.CORES, 7, 0, 0, range(0))]
    assert not cluster.cores[0].errors
    assert unchanged(cluster)


def test_a_stopped_core_refuses_commands_but_receives_data():
    cluster = cluster_of(2)
    before = cluster.cores[0].smem.copy()
    cluster.cores[0].stopped = True
    assert cluster.execute(0, copy(0, 256, cores=[0, 1])) is None
    assert cluster.execute_on(0, packed_map(TILE), load(0, [0])) is None
    assert cluster.cores[0].errors == [(ClusterError.STOPPED, 7, 0, 0, range(0))] * 2
    assert (cluster.cores[0].smem == before).all() and not cluster.cores[1].errors
    assert cluster.execute(1, copy(0, 256, cores=[0, 1]))
    assert not (cluster.cores[0].smem == before).all()
    cluster.cores[0].stopped = False
    assert cluster.execute(0, copy(0, 256, cores=[0, 1]))


def test_rules_of_the_issuer_have_priority():
    cluster = cluster_of(2)
    assert cluster.execute_on(0, packed_map(TILE), load(64, [5])) is None
    assert cluster.cores[0].errors[0].code == Error.SMEM_ALIGNMENT


def test_a_bus_error_leaves_every_receiver_as_it_was():
    cluster = cluster_of(2)
    far = TensorMap(element="u8", address=1 << 20, size=(64, 64), stride=(64,), box=(16, 8))
    assert cluster.execute_on(0, packed_map(far), load(0, [0, 1])) is None
    assert [error.code for error in cluster.cores[0].errors] == [Error.READ]
    assert unchanged(cluster)


def test_copies_between_cores():
    cluster, before = cluster_of(4), smems(4)
    assert cluster.execute(1, copy(0, 1024, cores=[3])) == 64
    assert (cluster.cores[3].smem[1024:1088] == before[1][:64]).all()
    assert cluster.execute(1, copy(128, 2048, source_core=2)) == 64
    assert (cluster.cores[1].smem[2048:2112] == before[2][128:192]).all()
    assert cluster.execute(0, copy(128, None, source_core=2)) == 64
    assert (cluster.cores[0].gmem.read(512, 64) == before[2][128:192]).all()
    add = {"reduction": "add", "element": "u32"}
    assert cluster.execute(0, copy(0, 3072, cores=[1, 2], **add)) == 64
    for core in (1, 2):
        sums = before[core][3072:3136].view("<u4") + before[0][:64].view("<u4")
        assert (cluster.cores[core].smem[3072:3136].view("<u4") == sums).all()


def test_source_and_destination_may_be_the_same_address_of_different_cores():
    cluster, before = cluster_of(2), smems(2)
    assert cluster.execute(0, copy(0, 0, cores=[1])) == 64
    assert (cluster.cores[1].smem[:64] == before[0][:64]).all()
    assert cluster.execute(0, copy(128, 160, source_core=1)) == 64
    for word in (copy(0, 0, cores=[0, 1]), copy(0, 32, source_core=1, cores=[1]), copy(0, 0)):
        assert cluster.execute(0, word) is None
        assert cluster.cores[0].errors.pop().code == Error.OVERLAP


def test_fields_of_a_cluster_mean_nothing_to_stores_and_to_a_core_alone():
    bits = delivery_bits(0b1010, source_core=3)
    cluster = cluster_of(2)
    word = command_word("store", smem=0, coords=(0, 0, 0, 0, 0)) | bits
    assert cluster.execute_on(0, packed_map(TILE), word) == 128
    assert (cluster.cores[0].gmem.read(256, 16) == smems(1)[0][:16]).all()
    assert cluster.execute(0, command_word("prefetch_block", source=0, size=64) | bits) == 0
    assert alone(0, copy(None, 256) | bits)[0].tolist() == alone(0, copy(None, 256))[0].tolist()


def test_a_cluster_of_one_is_a_core_alone():
    for word in (copy(None, 256), copy(0, 256), copy(0, None), copy(0, 16)):
        cluster, (smem, done) = cluster_of(1), alone(0, word)
        assert cluster.execute(0, word) == done
        assert (cluster.cores[0].smem == smem).all()


def record(code, word, name, value=0):
    return code, 7, COMMAND_FIELD + FORMATS[word & 15].index(name), value, range(0)


def remote(mask):
    return ClusterError.REMOTE, 7, 0, mask, range(0)


def test_a_core_may_not_name_cores_out_of_reach():
    cluster = cluster_of(3)
    cluster.cores[0].reach = 0b010
    assert cluster.execute(0, copy(None, 0, cores=[0, 1])) == 64  # itself always
    for word in (copy(None, 0, cores=[1, 2]), copy(0, 128, source_core=2)):
        assert cluster.execute(0, word) is None
        assert cluster.cores[0].errors.pop().code == ClusterError.CORES
    assert (cluster.cores[2].smem == smems(3)[2]).all()


def test_a_receiver_that_does_not_accept_drops_all_data():
    cluster, word = cluster_of(3), copy(None, 256, cores=[0, 1, 2], signal=1, barrier=1024)
    for core in cluster.cores:
        Barrier(pending=1, expected=1).write(core.smem, 1024)
    cluster.cores[1].accepts = 0
    before = cluster.cores[1].smem.copy()
    assert cluster.execute(0, word) is None
    assert cluster.cores[0].errors == [remote(0b010)]
    assert cluster.cores[1].errors == [record(Error.WINDOW, word, "destination")]
    assert not cluster.cores[2].errors
    assert (cluster.cores[1].smem == before).all()
    for core in (0, 2):
        assert (cluster.cores[core].smem[256:320] == mix_pattern(GMEM, 1)[512:576]).all()
        assert Barrier.read(cluster.cores[core].smem, 1024).transactions == -64


def test_a_receiver_drops_the_lines_outside_its_window():
    cluster, word = cluster_of(2), copy(None, 128, size=256, cores=[1], signal=1, barrier=1024)
    cluster.cores[1].windows = Windows(shared=(0, 255))
    before = cluster.cores[1].smem.copy()
    assert cluster.execute(0, word) is None
    assert cluster.cores[0].errors == [remote(0b10)]
    assert cluster.cores[1].errors == [record(Error.WINDOW, word, "destination")]
    assert (cluster.cores[1].smem[128:256] == mix_pattern(GMEM, 1)[512:640]).all()
    assert (cluster.cores[1].smem[256:] == before[256:]).all()  # and the barrier has counted nothing


def test_a_receiver_counts_nothing_if_its_barrier_is_outside_its_window():
    cluster, word = cluster_of(2), copy(None, 128, cores=[1], signal=1, barrier=1024)
    cluster.cores[1].windows = Windows(shared=(0, 255))
    assert cluster.execute(0, word) is None
    assert cluster.cores[1].errors == [record(Error.WINDOW, word, "barrier")]
    assert (cluster.cores[1].smem[256:] == smems(2)[1][256:]).all()


@pytest.mark.parametrize("change", [{"accepts": 0}, {"windows": Windows(shared=(0, 127))}])
def test_a_core_is_read_only_if_it_allows_it(change):
    cluster, word = cluster_of(3), copy(256, 1024, cores=[0, 1], source_core=2)
    for name, value in change.items():
        setattr(cluster.cores[2], name, value)
    assert cluster.execute(0, word) is None
    assert cluster.cores[0].errors == [remote(0b100)]
    assert cluster.cores[2].errors == [record(Error.WINDOW, word, "source")]
    assert unchanged(cluster)


def test_remote_arrivals():
    cluster = cluster_of(2)
    cluster.cores[1].barrier("init", 64, 2)
    assert cluster.barrier(0, "arrive", 64, 1, of=1) is False
    assert cluster.barrier(1, "arrive", 64, 1) is True
    assert cluster.barrier(1, "arrive", 64, 1, of=1) is False
    assert not cluster.cores[0].errors + cluster.cores[1].errors


@pytest.mark.parametrize(
    ("op", "address", "value", "change"),
    [
        ("init", 64, 1, {}), ("expect_tx", 64, 16, {}), ("try_wait", 64, 0, {}),
        ("arrive", 60, 1, {}), ("arrive", SMEM, 1, {}), ("arrive", 64, 1, {"accepts": 0}),
        ("arrive", 64, 1, {"windows": Windows(shared=(128, 255))}),
    ],
)  # fmt: skip
def test_refused_remote_operations(op, address, value, change):
    cluster = cluster_of(2)
    cluster.cores[1].barrier("init", 64, 2)
    before = cluster.cores[1].smem.copy()
    for name, changed in change.items():
        setattr(cluster.cores[1], name, changed)
    assert cluster.barrier(0, op, address, value, of=1) is None
    assert cluster.cores[0].errors == [(Error.BARRIER_OPERATION, 0, 0, address, range(0))]
    assert not cluster.cores[1].errors
    assert (cluster.cores[1].smem == before).all()


def test_a_refused_arrival_is_recorded_by_the_core_of_the_barrier():
    cluster = cluster_of(2)
    cluster.cores[1].barrier("init", 64, 2)
    before = cluster.cores[1].smem.copy()
    assert cluster.barrier(0, "arrive", 64, 3, of=1) is None
    assert cluster.cores[1].errors == [(Error.BARRIER_OPERATION, 0, 0, 64, range(0))]
    assert not cluster.cores[0].errors
    assert (cluster.cores[1].smem == before).all()


def test_garbage_writes_only_into_open_windows():
    print("seed 16")
    rng, cluster = random.Random(16), cluster_of(4, windows=Windows(global_=(0, 8191), shared=(1024, 2047)))
    cluster.cores[3].accepts = 0
    cluster.cores[0].reach = 0b0011
    closed = [core.smem.copy() for core in cluster.cores]
    gmem, codes, done = cluster.cores[0].gmem.data.copy(), set(), 0
    for _ in range(5000):
        places = rng.choice([range(64, 128), range(64, 128), range(280)])
        source, destination = (16 * rng.choice(places) for _ in range(2))
        word = copy(source, rng.choice([None, destination, destination]), 16 * rng.randrange(20))
        word |= delivery_bits(rng.getrandbits(5), rng.randrange(5))
        word ^= rng.getrandbits(1) << rng.randrange(512)
        done += cluster.execute(rng.randrange(3), word) is not None
    for number, core in enumerate(cluster.cores):
        codes |= {error.code for error in core.errors}
        assert (core.smem[:1024] == closed[number][:1024]).all()
        assert (core.smem[2048:] == closed[number][2048:]).all()
    assert (cluster.cores[3].smem == closed[3]).all()
    assert (cluster.cores[0].gmem.data[8192:] == gmem[8192:]).all()
    assert done > 500
    assert codes >= {ClusterError.CORES, ClusterError.REMOTE, Error.WINDOW, Error.OVERLAP}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Cluster(Memory(16), []), "the number of shared memories must be 1 to 16, not 0"),
        (lambda: Cluster(Memory(16), smems(17)), "the number of shared memories must be 1 to 16, not 17"),
        (lambda: Cluster(Memory(16), [np.zeros(128, np.uint8), np.zeros(256, np.uint8)]), "one size, not 128, 256"),
        (lambda: cluster_of(2).execute(2, load()), "core must be 0 to 1, not 2"),
        (lambda: cluster_of(2).barrier(0, "arrive", 64, 1, of=2), "core must be 0 to 1, not 2"),
        (lambda: cluster_of(2).barrier(0, "leave", 64, 1, of=1), "op must be one of .*, not 'leave'"),
        (lambda: delivery_bits([16]), "cores must be 0 to 15, not 16"),
        (lambda: delivery_bits(1 << 16), "cores must be 0 to 65535, not 65536"),
        (lambda: delivery_bits(source_core=16), "source_core must be 0 to 15, not 16"),
    ],
)
def test_wrong_arguments(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_delivery_bits():
    assert delivery_bits() == 0
    assert delivery_bits([3, 1, 3]) == delivery_bits(0b1010) == 1 << 400 | 0b1010 << 416
    assert delivery_bits(source_core=5) == 1 << 401 | 5 << 432
    assert delivery_bits(0) == 1 << 400
