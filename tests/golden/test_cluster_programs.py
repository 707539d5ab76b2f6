"""Programs of several cores on the golden model: they meet at barriers, and none of them ends another one."""

from collections import Counter

import numpy as np
import pytest

from tilewright.golden import (
    CONV_PRESETS,
    Cluster,
    ClusterGemm,
    Cores,
    DeadlockError,
    GlobalMemory,
    ImplicitGemm,
    Memory,
    PeSizes,
    ProgramRecord,
    Windows,
    command_word,
    convolve,
    delivery_bits,
    program_bytes,
    program_word,
    tmau_word,
)
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
END = program_word("end")


def cores_of(*programs, **options):
    """Cores of a cluster, and what :meth:`Cores.run` takes for their programs, lists of words or None."""
    gmem, starts = Memory(mix_pattern(GMEM, 1)), []
    for number, words in enumerate(programs):
        address = PROGRAMS + 0x400 * number
        starts.append((address, len(words)) if words else None)
        gmem.write(address, program_bytes(words or []))
    smems = [np.zeros(SMEM, np.uint8) for _ in programs]
    for smem in smems:
        for address in (BARRIER, OTHER):
            Barrier(pending=1, expected=1).write(smem, address)
    return Cores(Cluster(gmem, smems), **options), starts


def bring(*cores, barrier=BARRIER, **fields):
    """A word that copies the first 64 bytes of global memory to cores, and signals their barriers."""
    moves = {"source": 0, "destination": 0x80, "destination_space": "shared", "size": 64, "signal": 1}
    command = command_word("copy_block", barrier=barrier, **moves | fields) | delivery_bits(cores)
    return tmau_word(command)


def expect(barrier=BARRIER):
    """Words that await those bytes."""
    made = [("expect_tx", 64), ("arrive", 1), ("try_wait", 0)]
    return [program_word("barrier", operation=operation, barrier=barrier, value=value) for operation, value in made]


@pytest.mark.parametrize("sender", [0, 1])
def test_a_program_waits_for_what_another_core_brings(sender):
    """Whoever comes first; and what comes back is waited for by who sent before."""
    sends = [bring(0, 1), *expect(), *expect(OTHER), END]
    answers = [*expect(), bring(sender, barrier=OTHER), END]
    cores, starts = cores_of(*((answers, sends) if sender else (sends, answers)))
    assert cores.run(starts) == [None, None]
    for core in cores.cores:
        assert (core.smem[0x80:0xC0] == core.gmem.read(0, 64)).all()


def test_an_instruction_waits_for_another_core():
    """An engine that waits keeps its program, and no other one."""
    (wait,) = assemble_program(f"bar.wait {BARRIER:#x}, 0")
    words = program_word("pe", count=1, address=INSTRUCTIONS)
    await_bytes = [program_word("barrier", operation=op, barrier=BARRIER, value=value)
                   for op, value in (("expect_tx", 64), ("arrive", 1))]  # fmt: skip
    cores, starts = cores_of([*await_bytes, words, END], [program_word("wait_all"), bring(0), END])
    cores.cores[0].gmem.write(INSTRUCTIONS, np.frombuffer(wait.to_bytes(64, "little"), np.uint8))
    assert cores.run(starts) == [None, None]


def test_each_program_has_its_own_end():
    """An error of one, a core without a program, and one that goes on."""
    cores, starts = cores_of([0, END], None, [bring(1), END])
    assert cores.run(starts) == [ProgramRecord(ProgramError.KIND, Engine.NONE, 0, 0), None, None]
    assert (cores.cores[1].smem[0x80:0xC0] == cores.cores[2].gmem.read(0, 64)).all()


def test_what_a_receiver_refuses_stops_both_programs():
    """Each core records its part."""
    cores, starts = cores_of([bring(1, tag=5), END], [END])
    cores.cores[1].tmau.accepts = 0
    record = ProgramRecord(ProgramError.ENGINE, Engine.TMAU, 5, 1)
    assert cores.run(starts) == [record, record._replace(word=0)]
    assert not cores.cores[1].smem[0x80:0xC0].any()


@pytest.mark.parametrize("watchdog", [False, True])
def test_where_all_wait_nothing_comes(watchdog):
    """Two that wait for each other, beside one that has ended before."""
    waits = [*expect(), bring(0, 1), END]
    cores, starts = cores_of(waits, waits, [END], watchdog=watchdog)
    if watchdog:
        stopped = ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, 2)
        assert cores.run(starts) == [stopped, stopped, None]
    else:
        with pytest.raises(DeadlockError, match="word 2 waits for ever: nothing completes the phase of parity 0"):
            cores.run(starts)


def test_programs_are_of_all_cores():
    cores, starts = cores_of([END], [END])
    with pytest.raises(ValueError, match=r"^programs must be of 2 cores, not of 1$"):
        cores.run(starts[:1])


PAIRS = 1500
SMEM_BYTES = 4096
#: Pairs that run on one machine.
TOGETHER = 50
SIZES = PeSizes(threads=4, regs=32, segments=4, pages=8)


def machine():
    smems = [np.zeros(SMEM_BYTES, np.uint8) for _ in range(2)]
    cluster = Cluster(Memory(GLOBAL_BYTES), smems, windows=Windows(DATA_WINDOW))
    return Cores(cluster, pe=SIZES, program_window=PROGRAM_WINDOW, watchdog=True)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_garbage(seed):
    codes, refused, cores = Counter(), set(), None
    first, last = DATA_WINDOW
    for number, pair in enumerate(garbage_pairs(seed, CONV_PRESETS["unit"], SMEM_BYTES, PAIRS)):
        cores = cores if number % TOGETHER else machine()
        gmem = cores.cores[0].gmem.data
        gmem[:] = pair.gmem
        records = cores.run(pair.starts)
        changed = gmem != pair.gmem
        assert not changed[:first].any() and not changed[last + 1 :].any(), f"seed {seed}, pair {number}"
        codes.update(record.code if record else ProgramError.NONE for record in records)
        refused |= {error.code for core in cores.cores for error in core.tmau.errors}
    # There are no convolution engines, and nobody stops a program.
    assert set(codes) == set(ProgramError) - {ProgramError.STOPPED}
    assert codes[ProgramError.NONE] > PAIRS // 20
    assert refused >= {ClusterError.CORES, Error.WINDOW, Error.BARRIER_OPERATION}


SMALL = PeSizes(threads=4, regs=32, segments=8, pages=32)
SMALL_BYTES = 16 * 1024


def layer(x_shape, kernel, cores, **options):
    """A layer of random bytes, and the direct result."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, x_shape, np.uint8)
    k = rng.integers(-128, 128, (*kernel, x_shape[3]), np.int8)
    made = ClusterGemm(x, k, "u8s8", cores, sizes=SMALL, smem_bytes=SMALL_BYTES, **options)
    return made, convolve(x, k, "u8s8", **options)


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
def test_equals_the_convolution_engine(cores):
    made, expected = layer((2, 9, 10, 16), (5, 3, 3), cores, padding=(1, 1, 1, 1))
    assert (made.run() == expected).all()
    assert len(made.starts) == cores
    assert len(made.programs) == min(cores, made.plan.tiles) > cores - 2


def test_more_cores_than_tiles():
    """Those that are left over have no program."""
    made, expected = layer((1, 3, 5, 16), (4, 3, 3), 8)
    assert made.plan.tiles == len(made.programs) == 3
    assert made.starts[3:] == [None] * 5
    assert (made.run() == expected).all()


def test_tiles_are_such_that_all_cores_have_work():
    """One core takes them as large as they fit; of several each has some."""
    shapes = (1, 8, 8, 16), (8, 3, 3)
    assert layer(*shapes, 1, padding=(1, 1, 1, 1))[0].plan.tiles < 4
    assert layer(*shapes, 4, padding=(1, 1, 1, 1))[0].plan.tiles == 4


def test_one_core_brings_the_kernel(monkeypatch):
    """Each page of it once, to all of them; a core that has not been brought it waits."""
    made, _ = layer((1, 8, 8, 16), (8, 3, 3), 2, padding=(1, 1, 1, 1))
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
    cluster = Cluster(GlobalMemory(made.memory.copy()), smems)
    for core in range(2):
        cluster.barrier(core, BarrierOp.INIT, made.barrier, 1)
    cores = Cores(cluster, pe=SMALL, watchdog=True)
    records = cores.run([None, made.starts[1]])
    assert records[0] is None and records[1].code.name == "WATCHDOG"
    assert multicasts == []
    cluster.barrier(1, BarrierOp.INIT, made.barrier, 1)
    assert cores.run(made.starts) == [None, None]
    assert multicasts == [(0, 3)] * 2  # 144 bytes of K: two pages
    assert made.kernel_bytes == 2 * 128 * 8


def test_one_core_alone_is_an_implicit_gemm():
    """But for the barrier, its words are those of one core."""
    made, _ = layer((1, 8, 8, 16), (8, 3, 3), 1, padding=(1, 1, 1, 1))
    x, k = np.zeros((1, 8, 8, 16), np.uint8), np.zeros((8, 3, 3, 16), np.int8)
    alone = ImplicitGemm(x, k, "u8s8", padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES - 128)
    assert len(made.programs[0]) == len(alone.words) + 3


@pytest.mark.parametrize(
    ("x_shape", "kernel", "cores", "message"),
    [
        ((1, 2, 2, 48), (40, 3, 3), 2, "the kernel must fit the shared memory of a core as a whole, not in"),
        ((1, 4, 4, 16), (4, 3, 3), 17, "cores must be 1 to 16, not 17"),
        ((1, 4, 4, 16), (4, 3, 3), 0, "cores must be 1 to 16, not 0"),
    ],
)
def test_what_is_refused(x_shape, kernel, cores, message):
    with pytest.raises(ValueError, match=message):
        layer(x_shape, kernel, cores, padding=(1, 1, 1, 1))
