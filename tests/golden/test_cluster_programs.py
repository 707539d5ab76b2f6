"""Programs of several cores: barriers, deadlocks, garbage, and convolutions on clusters."""

from collections import Counter

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden.cluster import _Core
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BarrierOp, Error, Opcode
from tilewright.spec.cluster import DELIVERY, ClusterError
from tilewright.spec.core import Engine, ProgramError
from tilewright.spec.tmau import COMMAND
from tilewright.verify.random.programs import DATA_WINDOW, GLOBAL_BYTES, PROGRAM_WINDOW, garbage_pairs

SMEM, GMEM = 4096, 1 << 14
PROGRAMS, INSTRUCTIONS = 0x2000, 0x3000
BARRIER, OTHER = 0x40, 0x48
END = golden.program_word("end")


def cores_of(*programs, **options):
    """Cores of a cluster, and the argument of :meth:`Cores.run` for their programs, lists of words or None."""
    gmem, starts = golden.Memory(mix_pattern(GMEM, 1)), []
    for number, words in enumerate(programs):
        address = PROGRAMS + 0x400 * number
        starts.append((address, len(words)) if words else None)
        gmem.write(address, golden.program_bytes(words or []))
    smems = [np.zeros(SMEM, np.uint8) for _ in programs]
    for smem in smems:
        for address in (BARRIER, OTHER):
            Barrier(pending=1, expected=1).write(smem, address)
    return golden.Cores(golden.Cluster(gmem, smems), **options), starts


def bring(*cores, barrier=BARRIER, **fields):
    """A word that copies the first 64 bytes of global memory to cores, and signals their barriers."""
    moves = {"source": 0, "destination": 0x80, "destination_space": "shared", "size": 64, "signal": 1}
    command = golden.command_word("copy_block", barrier=barrier, **moves | fields) | golden.delivery_bits(cores)
    return golden.tmau_word(command)


def expect(barrier=BARRIER):
    """Words that wait for those bytes."""
    operations = {"expect_tx": 64, "arrive": 1, "try_wait": 0}
    return [
        golden.program_word("barrier", operation=name, barrier=barrier, value=value)
        for name, value in operations.items()
    ]


@pytest.mark.parametrize("sender", [0, 1])
def test_a_program_waits_for_data_of_another_core(sender):
    """In either order of the cores; the sender then waits for an answer."""
    sends = [bring(0, 1), *expect(), *expect(OTHER), END]
    answers = [*expect(), bring(sender, barrier=OTHER), END]
    cores, starts = cores_of(*((answers, sends) if sender else (sends, answers)))
    assert cores.run(starts) == [None, None]
    for core in cores.cores:
        assert (core.smem[0x80:0xC0] == core.gmem.read(0, 64)).all()


def test_an_instruction_waits_for_another_core():
    """A waiting engine holds its own program, and no other one."""
    (wait,) = assemble_program(f"bar.wait {BARRIER:#x}, 0")
    words = golden.program_word("pe", count=1, address=INSTRUCTIONS)
    cores, starts = cores_of([*expect()[:2], words, END], [golden.program_word("wait_all"), bring(0), END])
    cores.cores[0].gmem.write(INSTRUCTIONS, np.frombuffer(wait.to_bytes(64, "little"), np.uint8))
    assert cores.run(starts) == [None, None]


def test_each_program_has_its_own_end():
    """One has an error, a core has no program, and one goes on."""
    cores, starts = cores_of([0, END], None, [bring(1), END])
    assert cores.run(starts) == [golden.ProgramRecord(ProgramError.KIND, Engine.NONE, 0, 0), None, None]
    assert (cores.cores[1].smem[0x80:0xC0] == cores.cores[2].gmem.read(0, 64)).all()


def test_a_refusal_by_a_receiver_stops_both_programs():
    """Each core records its part."""
    cores, starts = cores_of([bring(1, tag=5), END], [END])
    cores.cores[1].tmau.accepts = 0
    record = golden.ProgramRecord(ProgramError.ENGINE, Engine.TMAU, 5, 1)
    assert cores.run(starts) == [record, record._replace(word=0)]
    assert not cores.cores[1].smem[0x80:0xC0].any()


@pytest.mark.parametrize("watchdog", [False, True])
def test_deadlock(watchdog):
    """Two cores wait for each other, after a third has ended."""
    waits = [*expect(), bring(0, 1), END]
    cores, starts = cores_of(waits, waits, [END], watchdog=watchdog)
    if watchdog:
        stopped = golden.ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, 2)
        assert cores.run(starts) == [stopped, stopped, None]
    else:
        with pytest.raises(
            golden.DeadlockError, match="word 2 waits for ever: nothing completes the phase of parity 0"
        ):
            cores.run(starts)


def test_programs_need_all_cores():
    cores, starts = cores_of([END], [END])
    with pytest.raises(ValueError, match=r"^programs must be of 2 cores, not of 1$"):
        cores.run(starts[:1])


PAIRS = 1500
SMEM_BYTES = 4096
#: Pairs on one machine.
PAIRS_PER_MACHINE = 50
SIZES = golden.PeSizes(threads=4, regs=32, segments=4, pages=8)


def machine():
    smems = [np.zeros(SMEM_BYTES, np.uint8) for _ in range(2)]
    cluster = golden.Cluster(golden.Memory(GLOBAL_BYTES), smems, windows=golden.Windows(DATA_WINDOW))
    return golden.Cores(cluster, pe=SIZES, program_window=PROGRAM_WINDOW, watchdog=True)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_garbage(seed):
    codes, refused, cores = Counter(), set(), None
    first, last = DATA_WINDOW
    for number, pair in enumerate(garbage_pairs(seed, golden.CONV_PRESETS["unit"], SMEM_BYTES, PAIRS)):
        cores = cores if number % PAIRS_PER_MACHINE else machine()
        gmem = cores.cores[0].gmem.data
        gmem[:] = pair.gmem
        records = cores.run(pair.starts)
        changed = gmem != pair.gmem
        assert not changed[:first].any() and not changed[last + 1 :].any(), f"seed {seed}, pair {number}"
        codes.update(record.code if record else ProgramError.NONE for record in records)
        refused |= {error.code for core in cores.cores for error in core.tmau.errors}
    # There are no convolution engines, and no host stops a program.
    assert set(codes) == set(ProgramError) - {ProgramError.STOPPED}
    assert codes[ProgramError.NONE] > PAIRS // 20
    assert refused >= {ClusterError.CORES, Error.WINDOW, Error.BARRIER_OPERATION}


SMALL = golden.PeSizes(threads=4, regs=32, segments=8, pages=32)
SMALL_BYTES = 16 * 1024


def layer(x_shape, kernel, cores, **options):
    """A layer of random bytes, and the direct result."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, x_shape, np.uint8)
    k = rng.integers(-128, 128, (*kernel, x_shape[3]), np.int8)
    gemm = golden.ClusterGemm(x, k, "u8s8", cores, sizes=SMALL, smem_bytes=SMALL_BYTES, **options)
    return gemm, golden.convolve(x, k, "u8s8", **options)


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
def test_equals_the_convolution_engine(cores):
    gemm, expected = layer((2, 9, 10, 16), (5, 3, 3), cores, padding=(1, 1, 1, 1))
    assert (gemm.run() == expected).all()
    assert len(gemm.starts) == cores
    assert len(gemm.programs) == min(cores, gemm.plan.tiles) > cores - 2


def test_more_cores_than_tiles():
    """The others have no program."""
    gemm, expected = layer((1, 3, 5, 16), (4, 3, 3), 8)
    assert gemm.plan.tiles == len(gemm.programs) == 3
    assert gemm.starts[3:] == [None] * 5
    assert (gemm.run() == expected).all()


def test_all_cores_have_tiles():
    """One core takes the largest tiles that fit; with several cores, tiles are smaller."""
    shapes = (1, 8, 8, 16), (8, 3, 3)
    assert layer(*shapes, 1, padding=(1, 1, 1, 1))[0].plan.tiles < 4
    assert layer(*shapes, 4, padding=(1, 1, 1, 1))[0].plan.tiles == 4


def test_core_0_loads_the_kernel(monkeypatch):
    """It multicasts each page once, and other cores wait for it."""
    gemm, _ = layer((1, 8, 8, 16), (8, 3, 3), 2, padding=(1, 1, 1, 1))
    multicasts = []
    execute = _Core.execute

    def counted(core, word):
        delivery, command = DELIVERY.unpack(word), COMMAND.unpack(word)
        if delivery["multicast"]:
            assert command["opcode"] == Opcode.LOAD
            multicasts.append((core.number, delivery["cores"]))
        return execute(core, word)

    monkeypatch.setattr(_Core, "execute", counted)
    smems = [np.zeros(SMALL_BYTES, np.uint8) for _ in range(2)]
    cluster = golden.Cluster(golden.GlobalMemory(gemm.memory.copy()), smems)
    for core in range(2):
        cluster.barrier(core, BarrierOp.INIT, gemm.barrier, 1)
    cores = golden.Cores(cluster, pe=SMALL, watchdog=True)
    records = cores.run([None, gemm.starts[1]])
    assert records[0] is None and records[1].code.name == "WATCHDOG"
    assert multicasts == []
    cluster.barrier(1, BarrierOp.INIT, gemm.barrier, 1)
    assert cores.run(gemm.starts) == [None, None]
    assert multicasts == [(0, 3)] * 2  # 144 bytes of K: two pages
    assert gemm.kernel_bytes == 2 * 128 * 8


def test_one_core_alone_is_an_implicit_gemm():
    """Its words are those of one core, and three for the barrier."""
    gemm, _ = layer((1, 8, 8, 16), (8, 3, 3), 1, padding=(1, 1, 1, 1))
    x, k = np.zeros((1, 8, 8, 16), np.uint8), np.zeros((8, 3, 3, 16), np.int8)
    alone = golden.ImplicitGemm(x, k, "u8s8", padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES - 128)
    assert len(gemm.programs[0]) == len(alone.words) + 3


@pytest.mark.parametrize(
    ("x_shape", "kernel", "cores", "message"),
    [
        ((1, 2, 2, 48), (40, 3, 3), 2, "the kernel must fit the shared memory of a core as a whole, not in"),
        ((1, 4, 4, 16), (4, 3, 3), 17, "cores must be 1 to 16, not 17"),
        ((1, 4, 4, 16), (4, 3, 3), 0, "cores must be 1 to 16, not 0"),
    ],
)
def test_refusals(x_shape, kernel, cores, message):
    with pytest.raises(ValueError, match=message):
        layer(x_shape, kernel, cores, padding=(1, 1, 1, 1))
