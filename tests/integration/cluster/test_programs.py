"""Programs of command processors on cores of a cluster, behind a second-level cache: bytes and records as golden.

Specification: docs/cluster.md, "Programs".
"""

import random
from collections import Counter

import numpy as np
import pytest

from support.clusters import PARAMS
from tilewright.golden import (
    CONV_PRESETS,
    Cluster,
    Cores,
    Memory,
    Segment,
    Windows,
    command_word,
    delivery_bits,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.hw.bus.axi4 import Response
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.session.cluster import ClusterSession
from tilewright.spec import Element, Reduction, Space
from tilewright.spec.core import ProgramError
from tilewright.spec.pe import SegmentElement
from tilewright.verify.random.programs import DATA_WINDOW, GLOBAL_BYTES, PROGRAM_AT, PROGRAM_WINDOW, garbage_pairs

SEED = 11
CORES, ROUNDS = PARAMS.cores, 4
GARBAGE = 200  # pairs of programs
#: Shared memory: a barrier for each sender and round; from each of them 128 bytes; a sum that all add to; what the
#: processing engine reads and writes.
BARRIERS, LANDED, SUM, READ, WRITTEN = 0, 0x800, 0x1000, 0x1080, 0x1100
#: Global memory: data, a sum of all cores, results of each core, instructions, and a program of each core.
BYTES, GLOBAL_SUM, RESULTS, INSTRUCTIONS, PROGRAMS = 1 << 20, 0x4000, 0x5000, 0x8000, 0x9000
#: Adds the number of the core to 32 words: the same program on all cores.
PE_PROGRAM = "movu ur0, 0\nmovu ur1, 1\nmov r0, tid\nmov r2, core\nst r2, ur1:rf0:0x0, 1\nfence"
END = program_word("end")
ADD = {"reduction": Reduction.ADD, "element": Element.U32}


def barrier_of(sender, turn):
    return BARRIERS + 8 * (ROUNDS * sender + turn)


def landed(sender, turn):
    return LANDED + 128 * (ROUNDS * sender + turn)


def copy(source, destination, size=128, out=False, cores=None, **fields):
    """A word that copies a block into shared memory, or out of it."""
    spaces = (Space.SHARED, Space.GLOBAL) if out else (Space.GLOBAL, Space.SHARED)
    command = command_word("copy_block", source=source, destination=destination, size=size, source_space=spaces[0],
                           destination_space=spaces[1], **fields)  # fmt: skip
    return tmau_word(command | delivery_bits(cores))


def random_programs(rng):
    """Words of each core. In every round each one brings a block to some, and uses what others have brought to it."""
    segments = [Segment(SegmentElement.U32, (32,), (5,), base=base).pack() for base in (READ, WRITTEN)]
    programs = [[word for number, packed in enumerate(segments) for word in segment_words(number, packed)]
                for _ in range(CORES)]  # fmt: skip
    for turn in range(ROUNDS):
        receivers = [rng.sample(range(CORES), rng.randint(1, CORES)) for _ in range(CORES)]
        for core, words in enumerate(programs):
            place = barrier_of(core, turn)
            brings = copy(128 * rng.randrange(64), landed(core, turn), cores=receivers[core], signal=1, barrier=place)
            awaits = [
                use for sender in range(CORES) if core in receivers[sender] for use in uses(rng, core, sender, turn)
            ]
            # Somebody sends first, and who brings something to itself does too: else all would wait for ever.
            sends_first = core == 0 or core in receivers[core] or rng.random() < 0.5
            words += [brings, *awaits] if sends_first else [*awaits, brings]
    return [[*words, program_word("wait_all"), *rng.choice([[END], [END], [0]])] for words in programs]


def uses(rng, core, sender, turn):
    """Words that wait for a block, and then do something with it."""
    at, result = landed(sender, turn), RESULTS + 0x800 * core + 128 * (ROUNDS * sender + turn)
    yield program_word("barrier", operation="expect_tx", barrier=barrier_of(sender, turn), value=128)
    yield program_word("barrier", operation="arrive", barrier=barrier_of(sender, turn), value=1)
    yield program_word("barrier", operation="try_wait", barrier=barrier_of(sender, turn), value=0)
    kind = rng.randrange(4)
    if kind == 0:
        yield copy(at, result, out=True)
    elif kind == 1:
        yield copy(at, GLOBAL_SUM, out=True, **ADD)
        yield program_word("loop", count=rng.randint(1, 3), back=1)
    elif kind == 2:
        # All add to the sums in all shared memories, whose order does not matter.
        yield copy(128 * rng.randrange(64), SUM, cores=list(range(CORES)), **ADD)
    else:
        yield program_word("pe", count=len(assemble_program(PE_PROGRAM)), address=INSTRUCTIONS)
        yield program_word("wait_all")
        yield copy(WRITTEN, result, out=True)


@pytest.fixture(scope="module")
def session():
    with ClusterSession(params=PARAMS, memory_bytes=BYTES, patience=300_000) as session:
        yield session


def compare(session, programs, **options):
    """Runs programs on golden and on hardware from a reset on, and compares all bytes and records."""
    contents, shared = mix_pattern(BYTES, 3), np.zeros(PARAMS.smem.size_bytes, np.uint8)
    instructions = b"".join(word.to_bytes(16, "little") for word in assemble_program(PE_PROGRAM))
    contents[INSTRUCTIONS:][: len(instructions)] = np.frombuffer(instructions, np.uint8)
    for number, words in enumerate(programs):
        contents[PROGRAMS + 0x2000 * number :][: 64 * len(words)] = program_bytes(words)
    for sender in range(CORES):
        for turn in range(ROUNDS):
            Barrier(pending=1, expected=1).write(shared, barrier_of(sender, turn))
    starts = [(PROGRAMS + 0x2000 * number, len(words)) for number, words in enumerate(programs)]

    gmem = Memory(contents.copy())
    cluster = Cluster(gmem, [shared.copy() for _ in range(CORES)], bus_bytes=PARAMS.tmau.bus_bytes,
                      addr_width=PARAMS.tmau.addr_width)  # fmt: skip
    cores = Cores(cluster, pe=PARAMS.core.pe, watchdog=bool(options.get("watchdog")))
    records = cores.run(starts)

    session.clear()
    session.global_memory.write(0, contents)
    for memory in session.shared_memories:
        memory.write(0, shared)
    run = session.run_programs(starts, drain=64, shared=True, **options)
    session.flush()
    assert run.records == records and not run.violations and not run.late
    for here, core in zip(run.cores, cores.cores, strict=True):
        assert (here.shared == core.smem).all()
    assert (session.run(memory=(0, BYTES)).memory == gmem.data).all()
    return run


@pytest.mark.long
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_programs_that_bring_each_other_data(session, stall):
    print(f"seed {SEED}")
    session.configure(latency=20, stall=stall, issue_stall=0.0, seed=SEED)
    rng = random.Random(f"{SEED} {stall}")
    ends = [compare(session, random_programs(rng)).records for _ in range(40)]
    assert len({tuple(record is None for record in records) for records in ends}) == 1 << CORES


@pytest.mark.long
def test_a_program_that_waits_for_ever_stops_alone(session):
    """Core 0 waits for what nobody brings, until its watchdog; core 1 does all of its work meanwhile, and ends."""
    session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=SEED)
    waits = [program_word("barrier", operation="try_wait", barrier=barrier_of(0, 0), value=0, tag=9), END]
    works = [copy(128 * number, landed(1, number % ROUNDS), cores=[0, 1]) for number in range(16)]
    run = compare(session, [waits, [*works, END]], watchdog=2000)
    assert [record and (record.code, record.tag) for record in run.records] == [(ProgramError.WATCHDOG, 9), None]


@pytest.mark.long
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_garbage(session, stall):
    """Nothing leaves the window, nothing hangs, and the next programs run."""
    # Behind what golden has of global memory there is none.
    session.configure(latency=20, stall=stall, issue_stall=0.0, seed=SEED,
                      errors=(GLOBAL_BYTES, BYTES - 1, Response.DECERR.value))  # fmt: skip
    windows = [*Windows(DATA_WINDOW).registers().items()]
    first, last = DATA_WINDOW
    after, at = program_bytes([program_word("wait_all"), END]), PROGRAM_AT
    seen, alike = Counter(), 0
    for number, pair in enumerate(garbage_pairs(SEED, CONV_PRESETS["unit"], PARAMS.smem.size_bytes, GARBAGE)):
        smems = [np.zeros(PARAMS.smem.size_bytes, np.uint8) for _ in range(CORES)]
        cluster = Cluster(Memory(pair.gmem.copy()), smems, bus_bytes=PARAMS.tmau.bus_bytes,
                          addr_width=PARAMS.tmau.addr_width, windows=Windows(DATA_WINDOW))  # fmt: skip
        expected = Cores(cluster, pe=PARAMS.core.pe, program_window=PROGRAM_WINDOW, watchdog=True).run(pair.starts)
        session.clear()
        session.global_memory.write(0, pair.gmem)
        for memory in session.shared_memories:
            memory.write(0, np.zeros(PARAMS.smem.size_bytes, np.uint8))
        session.run(registers=[windows] * CORES)
        run = session.run_programs(pair.starts, window=PROGRAM_WINDOW, watchdog=3000)
        assert run.violations == (), number
        seen.update(record.code for record in run.records if record)
        alike += run.records == expected
        # What engines have taken goes on, and may wait for ever: the watchdog ends that too.
        session.flush()
        session.global_memory.write(at, after)
        run = session.run_programs([(at, 2)] * CORES, watchdog=20_000)
        ends = {record.code for record in run.records if record}
        assert ends <= {ProgramError.ENGINE, ProgramError.WATCHDOG}, (number, run.records)
        session.flush()
        gmem = session.global_memory.read(0, GLOBAL_BYTES)
        gmem[at:][: len(after)] = pair.gmem[at:][: len(after)]
        changed = gmem != pair.gmem
        assert not changed[:first].any() and not changed[last + 1 :].any(), number
    session.configure(errors=(0, 0, 0))
    # When an engine's error stops a program depends on the hardware; of most pairs it does not matter.
    assert len(seen) > 8 and alike > GARBAGE // 2, (seen, alike)


@pytest.mark.long
def test_what_cannot_be_run_is_refused(session):
    with pytest.raises(ValueError, match=r"^registers must be lists for 2 cores, not 3$"):
        session.run_programs([None, None, (0, 1)])
    with pytest.raises(ValueError, match=r"^address must be"):
        session.run_programs([(-1, 1)])
