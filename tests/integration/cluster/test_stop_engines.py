"""One core of a cluster is stopped with all of its engines, in the middle of a program that would never end.

Specification: docs/cluster.md, "Stopping one core".
"""

import random

import numpy as np
import pytest

from tilewright.golden import (
    Cluster,
    Core,
    Memory,
    Pe,
    ProgramRecord,
    Segment,
    command_word,
    conv_words,
    delivery_bits,
    job_word,
    page_words,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.session.cluster import ClusterSession
from tilewright.sim.session.core import Session
from tilewright.sim.session.run import RECORD_ACCESSES, program_record, start_accesses
from tilewright.spec import Error, Opcode, Space
from tilewright.spec.cluster import ClusterError
from tilewright.spec.conv import ConvError
from tilewright.spec.core import ProgramError
from tilewright.spec.pe import PAGE_ENTRY, PeError, Put, SegmentElement

pytestmark = pytest.mark.long  # the model alone takes as long as all others of a cluster

SEED = 13
#: What the model is quick to build with.
LEAN = CORE_PRESETS["unit"].replace(
    tmau=CORE_PRESETS["unit"].tmau.replace(features=("swizzle", "stores")),
    pe=CORE_PRESETS["unit"].pe.replace(types=("i8",)),
    program=ProgramParams(),
)
#: Shared memory: barriers, one that nobody completes, one that is complete; what others bring; operands, results.
NEVER, DONE, BROUGHT, LANDED = 0, 8, 0x200, 0x800
READ, COLUMNS, WRITTEN, MAP, POOLED = 0xC00, 0xD00, 0xE00, 0x1000, 0x1800
BLOCK = 128
#: Global memory: data, results of each core, instructions and the program of each.
BYTES, RESULTS, INSTRUCTIONS, PROGRAMS = 1 << 16, 0x4000, 0x8000, 0xA000
PAGE = 5  # an entry
SEGMENTS = [
    Segment(SegmentElement.U32, (32,), (5,), base=READ),
    Segment(SegmentElement.U32, (32,), (5,), base=WRITTEN),
    Segment(SegmentElement.U32, (32,), (5,), paged=True, first_entry=PAGE),
    Segment(SegmentElement.S8, (16, 4), (4, 2), base=COLUMNS),
]
SETUP = [*(f"movu ur{number}, {number}" for number in range(len(SEGMENTS))), "mov r0, tid", "mov r20, 0x0",
         "mov r21, tid", *(f"mov r{number}, 0x0" for number in range(8, 12))]  # fmt: skip
#: A turn of work; thread i stores one word.
TURN = ["ld r2, ur0:rf0:0x0, 2", "mm8 r8, ur3:rf20:0x0, r2", "setp.lt p1, r8, 0x10", "@p1, mov r8, 0x7",
        "st r8, ur1:rf0:0x{at:x}, 1"]  # fmt: skip
#: What never ends in a core that is not stopped.
WAITS = {"barrier": f"bar.wait 0x{NEVER:x}, 0", "page": "ld r4, ur2:rf0:0x0, 1"}
SLACK = 8  # cycles, by which turns at the bus may fall otherwise
BOUND = 1500  # cycles from the stop until all is idle


def turns(count):
    return [line.format(at=4 * (turn % 4)) for turn in range(count) for line in TURN]


def copy(source, destination, out=False, cores=None, **fields):
    """A word that copies a block into shared memory, or out of it."""
    spaces = (Space.SHARED, Space.GLOBAL) if out else (Space.GLOBAL, Space.SHARED)
    command = command_word("copy_block", source=source, destination=destination, size=BLOCK, source_space=spaces[0],
                           destination_space=spaces[1], **fields)  # fmt: skip
    return tmau_word(command | delivery_bits(cores))


def pool(tag):
    """A job that pools a map of 8 channels, 12 by 12, to 6 by 6."""
    return job_word(operation="max_pool", type="u8u8", output="element", x=MAP, y=POOLED, channels=8, width=12,
                    height=12, out_channels=8, out_width=6, out_height=6, kernel=(2, 2), stride=(2, 2), granularity=3,
                    x_pitch=(8, 96, 1152), y_pitch=(8, 48, 288), tag=tag)  # fmt: skip


class Instructions:
    """Instructions of one core in global memory, and the words that hand them out."""

    def __init__(self, core):
        self.address, self.words = INSTRUCTIONS + 0x1000 * core, []

    def word(self, lines):
        words = assemble_program("\n".join(lines))
        at = self.address + 16 * len(self.words)
        self.words += words + [0] * (-len(words) % 4)
        return program_word("pe", count=len(words), address=at)

    def write(self, memory):
        raw = b"".join(word.to_bytes(16, "little") for word in self.words)
        memory[self.address :][: len(raw)] = np.frombuffer(raw, np.uint8)


def tables(not_loaded=False):
    """Words that write all segments and the page, which is valid."""
    entry = {"valid": 1, "loaded": 0 if not_loaded else 1, "on_chip": 1, "address": READ}
    words = [word for number, segment in enumerate(SEGMENTS) for word in segment_words(number, segment.pack())]
    return [*words, *page_words(PAGE, PAGE_ENTRY.pack(**entry))]


def endless(instructions, waits, rng, jobs):
    """Brings blocks, to both cores too, and works on them, until an instruction waits for what never comes."""
    yield from tables(not_loaded=True)
    yield instructions.word(SETUP)
    tag = 0
    for turn in range(6):
        for _ in range(rng.randrange(5)):
            tag += 1
            yield rng.choice([
                copy(BLOCK * rng.randrange(64), LANDED + BLOCK * rng.randrange(4), tag=tag),
                copy(BLOCK * rng.randrange(64), BROUGHT + BLOCK * (tag % 8), tag=tag, cores=[0, 1]),
                copy(LANDED, RESULTS + BLOCK * (tag % 8), out=True, tag=tag),
            ])  # fmt: skip
        for job in range(jobs * rng.randrange(3)):
            yield from conv_words(pool(8 * turn + job))
        yield instructions.word(turns(rng.randrange(1, 4)))
    yield instructions.word([WAITS[waits], *turns(8)])
    yield copy(0, LANDED, tag=99)
    yield program_word("end")


def useful(instructions, core, count, jobs):
    """Loads, multiplies and stores, turn by turn, and comes to its end."""
    yield from tables()
    yield instructions.word(SETUP)
    for turn in range(count):
        yield copy(BLOCK * (turn % 16), READ)
        yield copy(BLOCK * (16 + turn % 16), COLUMNS)
        yield program_word("wait_all")
        if jobs:
            yield from conv_words(pool(turn))
        yield instructions.word([f"bar.wait 0x{DONE:x}, 0", *turns(2), WAITS["page"], "fence"])
        yield program_word("wait_all")
        yield copy(WRITTEN, RESULTS + 0x1000 * core + BLOCK * (turn % 16), out=True)
    yield program_word("end")


def filled(programs, instructions):
    """Global memory with programs of the cores, and where they are."""
    contents, starts = mix_pattern(BYTES, 3), []
    for number, words in enumerate(programs):
        at = PROGRAMS + 0x2000 * number
        contents[at:][: 64 * len(words)] = program_bytes(words)
        starts.append((at, len(words)))
    for each in instructions:
        each.write(contents)
    return contents, starts


def shared_memory(size):
    smem = mix_pattern(size, 4)
    Barrier(pending=1, expected=1).write(smem, NEVER)
    Barrier(pending=1, expected=1, phase=1).write(smem, DONE)
    return smem


def statuses(session):
    """One read of the status of each engine, in the order of the page."""
    return [(engine, "status") for engine in ("program", "pe", "conv", "tmau") if engine in session.params.core.engines]


def put(session, *item):
    """Accesses that put something, and by which it is taken."""
    return [*Session.put(*item), *statuses(session) * 8]


@pytest.fixture(scope="module", params=["lean", "conv"])
def session(request):
    core = LEAN if request.param == "lean" else LEAN.with_conv(CONV_UNIT_PRESETS["unit"])
    with ClusterSession(params=ClusterParams(2, core), memory_bytes=BYTES, patience=300_000) as session:
        yield session


def run(session, programs, instructions, *, stopped_after=None, rounds=0, limit=None):
    """Runs programs from a reset on; core 0 is stopped after so many accesses, and looked at so many times."""
    contents, starts = filled(programs, instructions)
    session.clear()
    session.global_memory.write(0, contents)
    for memory in session.shared_memories:
        memory.write(0, shared_memory(session.params.smem.size_bytes))
    registers = [start_accesses(*start, None, 0) for start in starts]
    if stopped_after is not None:
        registers[0] += [("status",)] * stopped_after + [("stop", 1)] + statuses(session) * rounds
    return session.run(registers=registers, drain=64, shared=True, memory=(0, BYTES), limit=limit)


def golden_core(session, number, contents, shared):
    """A core of a cluster whose other core does nothing."""
    params, gmem = session.params, Memory(contents.copy())
    cluster = Cluster(gmem, [shared.copy() for _ in range(2)], bus_bytes=params.tmau.bus_bytes,
                      addr_width=params.tmau.addr_width, features=params.tmau.features)  # fmt: skip
    conv = params.core.conv and params.core.conv.conv
    machine = cluster.cores[number]
    return Core(gmem, machine.smem, pe=params.core.pe, conv=conv, tmau=machine, number=number)


#: What it would wait for, and accesses before the stop: some 4 cycles each.
CASES = [(waits, accesses) for waits in WAITS for accesses in range(1, 656, 21)]


@pytest.mark.parametrize(("waits", "accesses"), CASES)
def test_a_program_that_would_never_end(session, waits, accesses):
    """Core 0 is stopped in the middle of it, becomes idle in bounded time, and runs another one after its start.

    Core 1 works on: its bytes are those of golden, and it ends as early as beside a core that is not stopped.
    """
    rng, jobs = random.Random(f"{SEED} {waits} {accesses}"), 1 if session.params.core.conv else 0
    instructions = [Instructions(core) for core in range(2)]
    programs = [list(endless(instructions[0], waits, rng, jobs)), list(useful(instructions[1], 1, 10, jobs))]
    session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=accesses)
    stopped = run(session, programs, instructions, stopped_after=accesses, rounds=300)
    assert not stopped.violations and not stopped.late
    zero, one = stopped.cores

    # Every engine is idle within the bound, and stays so.
    engines = len(statuses(session))
    stop, *answers = zero.registers[-1 - 300 * engines :]
    rounds = [answers[first : first + engines] for first in range(0, len(answers), engines)]
    idle = [all(answer.data & 1 for answer in each) for each in rounds]
    taken = rounds[idle.index(True)][-1].cycle - stop.cycle
    assert all(idle[idle.index(True) :]) and taken < BOUND

    # What has not begun is refused, and nothing else, by each engine in its order.
    ends = [end.error for end in sorted(zero.ends, key=lambda end: end.tag)]  # that are refused end earlier
    assert ends == sorted(ends) and set(ends) <= {Error.NONE, ClusterError.STOPPED}
    codes = [fault.code for fault in zero.faults]
    numbers = [fault.number for fault in zero.faults if fault.code == PeError.STOPPED]
    assert set(codes) <= {PeError.STOPPED, PeError.OFF_CHIP}
    assert numbers == list(range(len(zero.performed)))[-len(numbers) :] if numbers else True
    results = [end.code for end in zero.jobs]
    assert results == sorted(results) and set(results) <= {ConvError.NONE, ConvError.STOPPED}
    print(f"seed {SEED}, {waits}, {accesses} accesses: idle after {taken} cycles; refused are "
          f"{ends.count(ClusterError.STOPPED)} of {len(ends)} commands, {len(numbers)} of {len(zero.performed)} "
          f"instructions, {results.count(ConvError.STOPPED)} of {len(results)} jobs")  # fmt: skip

    # The other core: its own bytes; what core 0 brought, block by block the old or the new one.
    contents, starts = filled(programs, instructions)
    expected = golden_core(session, 1, contents, shared_memory(session.params.smem.size_bytes))
    assert expected.run(*starts[1]) is None
    brought = slice(BROUGHT, BROUGHT + 8 * BLOCK)
    smem, own = one.shared.copy(), slice(RESULTS + 0x1000, RESULTS + 0x2000)
    for block, old in zip(smem[brought].reshape(-1, BLOCK), expected.smem[brought].reshape(-1, BLOCK), strict=True):
        assert (block == old).all() or (block == contents[: 64 * BLOCK].reshape(-1, BLOCK)).all(1).any()
    smem[brought] = expected.smem[brought]
    assert (smem == expected.smem).all() and (stopped.memory[own] == expected.gmem.read(own.start, 0x1000)).all()
    assert not one.faults and not any(end.error for end in one.ends)

    # Its program has been stopped, as is one that begins now. After the start core 0 runs what core 1 has run.
    record, _ = program_record(session.run(registers=[RECORD_ACCESSES]).cores[0].registers)
    assert record.code == ProgramError.STOPPED
    session.stop(0)
    halted = session.run_programs([starts[1]])
    assert halted.records == [ProgramRecord(ProgramError.STOPPED, 0, 0, 0), None] and not halted.cores[0].words
    session.start(0)
    again = session.run_programs([starts[1]], drain=64, shared=True, memory=(0, BYTES))
    expected = golden_core(session, 0, stopped.memory, zero.shared)
    assert expected.run(*starts[1]) is None and again.records == [None, None]
    assert not again.cores[0].faults and (again.cores[0].shared == expected.smem).all()
    assert (again.memory == expected.gmem.read(0, BYTES)).all()

    # Beside a core that is not stopped core 1 is no earlier.
    without = run(session, programs, instructions, limit=2 * stopped.cycles)
    late = one.words[-1].cycle - without.cores[1].words[-1].cycle
    print(f"core 1 ends {late} cycles later than beside a core that goes on")
    assert not without.finished and late <= SLACK


def test_what_comes_at_ports_waits_and_what_is_put_is_refused(session):
    """So the engine is idle, whatever was put; after the start all that waited is done."""
    params = session.params
    # A refused instruction leaves registers as they are: none of them is undefined.
    setup = assemble_program("\n".join([*SETUP, "mov r2, 0x1", "mov r3, 0x1", "setp.eq p1, tid, 0x1"]))
    words = assemble_program("\n".join([*turns(30), WAITS["page"]]))
    moved = assemble_program("mov r0, 0x1000")[0]
    brings = command_word("copy_block", source=0, destination=READ, destination_space="shared", size=BLOCK)
    moves = [{"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": BLOCK * number, "size": BLOCK,
              "destination": LANDED + BLOCK * (number % 4)} for number in range(30)]  # fmt: skip
    contents, shared = mix_pattern(BYTES, 3), shared_memory(params.smem.size_bytes)
    for accesses in (5, 17, 41):
        session.clear()
        session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=accesses)
        session.global_memory.write(0, contents)
        for memory in session.shared_memories:
            memory.write(0, shared)
        segments = [access for number, segment in enumerate(SEGMENTS)
                    for access in put(session, Put.SEGMENT, number, segment.pack())]  # fmt: skip
        assert not any(answer.response for answer in session.run(registers=[segments]).cores[0].registers)
        session.run(programs=[setup])
        stopped = [*[("status",)] * accesses, ("stop", 1), *statuses(session) * 200]
        puts = [*put(session, Put.INSTRUCTION, 0, moved), *put(session, Put.PAGE_IN, PAGE, brings)]
        accesses = [*stopped, *puts, ("stop", 0)]
        run = session.run([moves], programs=[words], registers=[accesses], drain=64, shared=True)
        zero, count = run.cores[0], len(statuses(session))
        started = zero.registers[-1].cycle
        assert not any(answer.response for answer in zero.registers)
        # The put ones were taken and have ended. Bit 2 of the processing engine's status says that one has not.
        assert all(answer.data & 5 == 1 for answer in zero.registers[-1 - count : -1])

        refused = [fault.number for fault in zero.faults if fault.code == PeError.STOPPED]
        assert refused == list(range(refused[0], refused[-1] + 1))
        last = refused[-1] - len(setup)  # the one that was put
        assert 0 < last < len(words)
        assert sum(cycle > zero.registers[-2].cycle for cycle in zero.performed) == len(words) - last
        pe = Pe(shared.copy(), params.core.pe)
        for number, segment in enumerate(SEGMENTS):
            pe.write_segment(number, segment.pack())
        for number, word in enumerate([*setup, *words[:last], moved, *words[last:]]):
            pe.stopped = number in refused
            pe.execute(word)
        assert zero.faults == pe.faults and pe.faults[-1].code == PeError.UNMAPPED

        ends = [stamp.error for stamp in zero.commands]
        waited = [stamp.accepted > started for stamp in zero.commands]
        assert waited == sorted(waited) and any(waited) and ClusterError.STOPPED in ends
        assert {end for end, later in zip(ends, waited, strict=True) if later} == {Error.NONE}
        for move, end in zip(moves, ends, strict=True):
            if end == Error.NONE:
                pe.smem[move["destination"] :][:BLOCK] = contents[move["source"] :][:BLOCK]
        assert (zero.shared == pe.smem).all()
