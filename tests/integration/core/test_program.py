"""Programs of the command processor on hardware: every byte and every record as the golden model has them.

In a folder of its own, which tests run long before test_core.py: who needs the model there finds it, and does not wait.
"""

import random

import numpy as np
import pytest

from support.selection import cases
from support.sessions import session_fixture
from tilewright.golden import (
    Core,
    Memory,
    ProgramRecord,
    Segment,
    Windows,
    command_word,
    conv_words,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import Opcode, Space
from tilewright.spec.conv import JOB
from tilewright.spec.core import PROGRAM_WORDS, Engine, Kind, ProgramError
from tilewright.spec.pe import SegmentElement
from tilewright.verify.random.conv_jobs import random_jobs
from tilewright.verify.random.programs import DATA_WINDOW, GLOBAL_BYTES, PROGRAM_AT, PROGRAM_WINDOW, garbage_programs

PARAMS = CORE_PRESETS["unit"].replace(conv=CONV_UNIT_PRESETS["unit"], program=ProgramParams())
BYTES = 1 << 16
SMEM = PARAMS.smem.size_bytes
#: Where things lie in shared memory: barriers, jobs from 0 on, what the processing engine reads and writes, copies.
BARRIER, OTHER_BARRIER = SMEM - 8, SMEM - 16
READ, WRITTEN, COPIED = 8192, 8704, 9216
PE_PROGRAM = "movu ur0, 0\nmovu ur1, 1\nmov r0, tid\nld r2, ur0:rf0:0x0, 1\nst r2, ur1:rf0:0x0, 1\nfence"
#: Adds ur2 three times to what it reads in segment ur0, and writes it to segment ur1.
KERNEL = """load.code 4, 8
mov r0, tid
ld r2, ur0:rf0:0x0, 1
loop 3
add r2, r2, ur2
end
st r2, ur1:rf0:0x0, 1
fence
return"""
STOP = ("program", "control", 8)
SEED = 3
#: Words after which a garbage program is taken for one that never ends.
LONG_LOOP = 2000
#: Cycles that a word of a garbage program may take.
WATCHDOG = 3000


shared_session = session_fixture(params=PARAMS, latency=20, memory_bytes=BYTES)


@pytest.fixture
def session(shared_session):
    shared_session.clear()
    shared_session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=1, errors=(0, 0, 0))
    rng = np.random.default_rng(SEED)
    shared_session.shared_memory.write(0, rng.integers(0, 256, SMEM, np.uint8))
    return shared_session


def copy(source, destination, size, out=False, **fields):
    """A word that copies a block into shared memory, or out of it."""
    spaces = {"source_space": Space.SHARED, "destination_space": Space.GLOBAL} if out else {
        "source_space": Space.GLOBAL, "destination_space": Space.SHARED}  # fmt: skip
    return tmau_word(command_word(Opcode.COPY_BLOCK, source=source, destination=destination, size=size,
                                  **spaces, **fields))  # fmt: skip


def wait(*engines):
    return program_word("wait_all", engines=sum(1 << engine - 1 for engine in engines))


def barrier(operation, value=0, at=BARRIER):
    return program_word("barrier", operation=operation, barrier=at, value=value, tag=7)


END = program_word("end", interrupt=1)


def golden_core(session, **options):
    """A golden core with copies of a session's memories."""
    gmem = session.global_memory.read(0, len(session.global_memory)).copy()
    smem = session.shared_memory.read(0, SMEM).copy()
    tmau = PARAMS.tmau
    return Core(Memory(gmem), smem, pe=PARAMS.pe, conv=PARAMS.conv.conv, bus_bytes=tmau.bus_bytes,
                addr_width=tmau.addr_width, **options)  # fmt: skip


def compare(session, words, address=None, **options):
    """Runs a program on golden and on hardware, and compares all bytes and the record; returns the hardware's run."""
    address = session.place(program_bytes(words)) if address is None else address
    core = golden_core(session)
    core.run(address, len(words))
    run = session.run_program(address, len(words), **options)
    assert run.finished and run.violations == () and run.late == ()
    assert run.record == core.record
    assert run.interrupt == bool(core.interrupts)
    assert (session.shared_memory.read(0, SMEM) == core.smem).all()
    gmem = session.global_memory.read(0, len(session.global_memory))
    assert (gmem == core.gmem.data).all()
    return run


class Maker:
    """Random programs that are determined: engines work side by side, and far from each other, between two waits."""

    def __init__(self, session, seed):
        self.rng = random.Random(seed)
        self.session = session
        self.jobs = list(random_jobs(seed, PARAMS.conv.conv, 6, most_macs=500, smem_bytes=4096))
        self.sources = [session.place(np.resize(job.smem, -(-len(job.smem) // 128) * 128)) for job in self.jobs]
        self.data = session.place(np.random.default_rng(seed).integers(0, 256, 2048, np.uint8))
        self.results = session.place(np.zeros(4096, np.uint8))
        self.run, self.load_kernel = self._place(PE_PROGRAM), self._place(KERNEL)

    def _place(self, text):
        """A PE word of a program, which is placed in global memory."""
        program = b"".join(word.to_bytes(16, "little") for word in assemble_program(text))
        address = self.session.place(np.frombuffer(program, np.uint8))
        return program_word("pe", count=len(program) // 16, tag=5, address=address)

    def words(self, rounds):
        segments = [Segment(SegmentElement.U32, (32,), (5,), base=base).pack() for base in (READ, WRITTEN)]
        made = [word for index, segment in enumerate(segments) for word in segment_words(index, segment)]
        made.append(self.load_kernel)
        for _ in range(rounds):
            made += self.rng.choice([self._job, self._instructions, self._kernel, self._copies, self._loop])()
        return [*made, END]

    def _load(self, source, destination, size):
        """A load, and a wait for it by a barrier's first phase."""
        return [
            barrier("init", 1), barrier("expect_tx", size),
            copy(source, destination, size, signal=1, barrier=BARRIER, tag=1),
            barrier("arrive", 1), barrier("try_wait", 0),
        ]  # fmt: skip

    def _job(self):
        """A job, which arrives at a barrier, while copies go on elsewhere."""
        number = self.rng.randrange(len(self.jobs))
        job = self.jobs[number]
        size = -(-len(job.smem) // 128) * 128
        mask = JOB.pack(signal=1, early=1, barrier=(1 << 32) - 1)
        word = job.word & ~mask | JOB.pack(signal=1, barrier=OTHER_BARRIER)
        return [
            *self._load(self.sources[number], 0, size), barrier("init", 1, OTHER_BARRIER), *conv_words(word),
            *(copy(self.data + 16 * self.rng.randrange(64), COPIED, 512) for _ in range(self.rng.randrange(3))),
            barrier("try_wait", 0, OTHER_BARRIER),
            copy(0, self.results, 1024, out=True), wait(Engine.TMAU, Engine.CONV),
        ]  # fmt: skip

    def _instructions(self):
        load = self._load(self.data + 16 * self.rng.randrange(64), READ, 128)
        return [*load, self.run, wait(Engine.PE), copy(WRITTEN, self.results + 1024, 128, out=True), wait()]

    def _kernel(self):
        """The same with a kernel, while a copy goes on elsewhere."""
        load = self._load(self.data + 16 * self.rng.randrange(64), READ, 128)
        call = program_word("kernel", entry=4, first=0, count=3, argument=[0, 1, self.rng.getrandbits(32)] + [0] * 9)
        return [
            *load, call, copy(self.data, COPIED, 512), wait(Engine.PE),
            copy(WRITTEN, self.results + 1024, 128, out=True), wait(),
        ]  # fmt: skip

    def _copies(self):
        made = [copy(self.data + 16 * self.rng.randrange(64), COPIED + 512 * place, 512) for place in range(4)]
        return [*made, wait(Engine.TMAU), copy(COPIED, self.results + 2048, 2048, out=True), wait()]

    def _loop(self):
        """Around an even number of phases, or inside another loop."""
        body = [*self._load(self.data, READ, 64), barrier("expect_tx", 0), barrier("arrive", 1), barrier("try_wait", 1)]
        count, outer = self.rng.randrange(1, 4), self.rng.randrange(1, 3)
        inner = program_word("loop", count=count, back=len(body))
        return [*body, inner, program_word("loop", count=outer, back=len(body) + 1)]


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("latency", [2, 100])
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(session, seed, latency, stall):
    session.configure(latency=latency, stall=stall, seed=seed + 1)
    maker = Maker(session, seed)
    for rounds in (1, 4, 12):
        run = compare(session, maker.words(rounds))
        assert run.record is None and run.interrupt
        assert run.words[-1].kind == Kind.END


def test_engines_work_side_by_side(session):
    """A job and copies: what they take together is less than one after the other."""
    maker = Maker(session, 1)
    job = conv_words(max(maker.jobs, key=lambda job: len(job.smem)).word)
    copies = [copy(maker.data, COPIED, 512, tag=tag) for tag in range(6)]
    both = compare(session, [*job, *copies, END])
    apart = compare(session, [*job, wait(), *copies, END])
    assert both.record is None and both.cycles < apart.cycles
    assert both.jobs[0].cycle > both.ends[0].cycle, "the first copy ended before the job"


def test_a_window(session):
    """What a program is must lie in it."""
    address = session.place(program_bytes([program_word("pe", count=4, address=0x8000), END]), align=4096)
    for window, record in (
        ((0, 0xFFFF), None), ((address, address + 63), ProgramError.WINDOW), ((0x8000, 0x8FFF), ProgramError.WINDOW),
    ):  # fmt: skip
        core = golden_core(session, program_window=window)
        # Zeros are no instructions: the processing engine says so, if it is handed any.
        expected = core.run(address, 2)
        run = session.run_program(address, 2, window=window)
        assert run.record.code == (record or ProgramError.ENGINE)
        assert record is None or run.record == expected


@pytest.mark.parametrize("what", ["word", "instructions", "end"])
def test_the_bus_answers_with_an_error(session, what):
    words = [copy(0xA000, COPIED, 512, tag=3), program_word("pe", count=9, address=0x9000, tag=6), wait(), END]
    at = session.place(program_bytes(words), align=64)
    session.global_memory.write(0x9000, b"".join(word.to_bytes(16, "little") for word in assemble_program(
        "movu ur0, 0\n" * 8 + "fence")))  # fmt: skip
    place, record = {
        "word": (at + 64, (0, 1)), "instructions": (0x9040, (6, 1)), "end": (at + 192, (0, 3)),
    }[what]  # fmt: skip
    session.configure(errors=(place, place + 15, Response.SLVERR.value))
    run = session.run_program(at, len(words))
    assert run.record == ProgramRecord(ProgramError.BUS, Engine.NONE, *record)
    session.configure(errors=(0, 0, 0))
    assert session.run_program(at, len(words)).record is None, "the next program runs"


def test_a_barrier_that_never_comes(session):
    """The watchdog ends the wait, of the program and of an instruction; then a program brings what is missing."""
    words = [barrier("init", 1), barrier("try_wait", 0), END]
    at = session.place(program_bytes(words))
    run = session.run_program(at, len(words), watchdog=500)
    assert run.record == ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 7, 1)
    code = assemble_program(f"bar.wait {BARRIER}, 0\nfence\nfence\nfence")
    place = session.place(np.frombuffer(b"".join(word.to_bytes(16, "little") for word in code), np.uint8), align=64)
    stuck = session.place(program_bytes([program_word("pe", count=4, address=place, tag=9), wait(), END]))
    run = session.run_program(stuck, 3, watchdog=500)
    assert run.record.code == ProgramError.WATCHDOG and run.record.word in (0, 1)
    end = session.place(program_bytes([END]))
    assert session.run_program(end, 1, watchdog=500).record.code == ProgramError.WATCHDOG
    frees = session.place(program_bytes([barrier("arrive", 1), END]))
    assert session.run_program(frees, 2, watchdog=5000).record is None


def test_stops_and_resets_in_the_middle(session):
    maker = Maker(session, 5)
    words = maker.words(6)
    at = session.place(program_bytes(words))
    end = session.place(program_bytes([END]), align=64)
    others = maker.words(2)
    place = session.place(program_bytes(others))
    whole = session.run_program(at, len(words)).cycles
    for cycles in range(20, whole, whole // 10):
        run = session.run_program(at, len(words), registers=[("program", "status")] * (cycles // 8) + [STOP])
        assert run.record is None or run.record.code == ProgramError.STOPPED
        # What engines have taken goes on: the end of a program waits for it.
        assert session.run_program(end, 1).record is None
        assert compare(session, others, place).record is None
    for cycles in range(20, whole, whole // 30):
        assert not session.run_program(at, len(words), limit=cycles).finished
        session.reset()
        # The reset comes with the next run, and in its cycle a line that is under way is still written.
        assert session.run_program(end, 1).record is None
        assert compare(session, others, place).record is None


def test_an_error_of_each_engine(session):
    """Its record stops the program, and the next start forgets it."""
    wrong = {
        Engine.TMAU: [copy(0, 1, 16, tag=77)],
        Engine.PE: [program_word("pe", count=1, address=0xF000)],
        Engine.CONV: conv_words(77 << 16),
    }
    for engine, bad in wrong.items():
        words = [*bad, wait(), END]
        at = session.place(program_bytes(words))
        record = session.run_program(at, len(words)).record
        assert record[:2] == (ProgramError.ENGINE, engine), record
        assert record.tag == (0 if engine == Engine.PE else 77 if engine == Engine.TMAU else record.tag)
        assert compare(session, [END]).record is None


def test_registers(session):
    values = session.registers("program")
    assert values["id"] == int.from_bytes(b"TWCP") and values["params1"] == SMEM
    at = session.place(program_bytes([copy(0, COPIED, 64), wait(), END]))
    session.run_program(at, 3, registers=[("program", "irq_enable", 3)])
    run = session.run(registers=[("program", name) for name in ("words", "beats", "word", "busy_cycles")])
    assert run.irq and [answer.data for answer in run.registers[:3]] == [3, 12, 2]
    assert 20 < run.registers[3].data < 500


def test_progress_is_told_and_changes_nothing(session):
    """Of a loop of some 40,000 cycles, in slices of 20,000."""
    body = [copy(0xA000, COPIED, 512), wait(Engine.TMAU)]
    words = [*body, program_word("loop", count=500, back=len(body)), END]
    plain, told = compare(session, words), []
    session.reset()
    run = compare(session, words, progress=told.append)
    assert (run.cycles, run.words, run.ends) == (plain.cycles, plain.words, plain.ends)
    assert len(told) == -(-run.cycles // 20_000) > 1 and sorted(told) == told and told[-1] == len(run.words)
    part = session.run_program(session.place(program_bytes(words), align=64), len(words), limit=25_000, drain=7,
                               progress=told.append)  # fmt: skip
    assert not part.finished and part.cycles == 25_000


def test_mistakes(session):
    with pytest.raises(TypeError, match=r"^window must be a first and a last address, not 5$"):
        session.run_program(0, 1, window=5)
    with pytest.raises(ValueError, match=r"^words must be 0 to 4294967295, not -1$"):
        session.run_program(0, -1)


def follow(core, program):
    """Runs a garbage program on golden: whether it loops as good as for ever, and whether an engine may still work."""
    working = set()
    for count, step in enumerate(core.steps(PROGRAM_AT, program.words)):
        if count == LONG_LOOP:
            return True, bool(working)
        if step.kind == Kind.WAIT_ALL:
            named = PROGRAM_WORDS[Kind.WAIT_ALL].unpack(step.word)["engines"]
            working = {engine for engine in working if named and not named >> engine - 1 & 1}
        elif step.kind in (Kind.TMAU, Kind.PE, Kind.CONV):
            # A page of the processing engine is moved by the access unit.
            working |= {Engine[step.kind.name]} | ({Engine.TMAU} if step.kind == Kind.PE else set())
    return False, bool(working)


def settles(session):
    """Lets engines end what a program that stopped has handed them; whether they do."""
    for _ in range(20):
        status = session.run(registers=[(engine, "status") for engine in ("tmau", "pe", "conv")], drain=50).registers
        if all(answer.data & 1 for answer in status):
            return True
    return False


@cases("count, endless", [(60, 0)], [(20_000, 66)])
def test_garbage(session, count, endless):
    """Nothing leaves the window, nothing hangs, records are golden's, and the next program runs."""
    session.configure(errors=(GLOBAL_BYTES, len(session.global_memory) - 1, Response.DECERR.value))
    after = program_bytes([copy(DATA_WINDOW[0], COPIED, 64), wait(Engine.TMAU)])
    seen, resets, looped = set(), 0, 0
    for number, program in enumerate(garbage_programs(SEED, PARAMS.conv.conv, SMEM, count)):
        session.global_memory.write(0, program.gmem)
        session.shared_memory.write(0, np.zeros(SMEM, np.uint8))
        session.run(registers=[("tmau", name, value) for name, value in Windows(DATA_WINDOW).registers().items()])
        core = Core(Memory(program.gmem.copy()), np.zeros(SMEM, np.uint8), pe=PARAMS.pe, conv=PARAMS.conv.conv,
                    bus_bytes=PARAMS.tmau.bus_bytes, addr_width=PARAMS.tmau.addr_width, windows=Windows(DATA_WINDOW),
                    program_window=PROGRAM_WINDOW, watchdog=True)  # fmt: skip
        loops, works = follow(core, program)
        # What engines do side by side with a word, on barriers too, has no order.
        vague = {ProgramError.ENGINE, ProgramError.WATCHDOG} | ({ProgramError.BARRIER} if works else set())
        expected = core.record
        # What stops golden may be over here, and an endless loop may follow. It does not hang: words go on.
        goes_on = loops or (expected and expected.code in vague)
        run = session.run_program(PROGRAM_AT, program.words, window=PROGRAM_WINDOW, watchdog=WATCHDOG,
                                  limit=100_000 if goes_on else None)  # fmt: skip
        assert run.finished or (goes_on and run.words[-1].cycle > run.cycles - WATCHDOG - 100), number
        assert run.violations == (), number
        gmem = session.global_memory.read(0, GLOBAL_BYTES)
        first, last = DATA_WINDOW
        assert (gmem[:first] == program.gmem[:first]).all() and (gmem[last + 1 :] == program.gmem[last + 1 :]).all()
        looped += loops
        if loops or not run.finished:
            session.reset()
            continue
        codes = {record.code for record in (expected, run.record) if record}
        assert run.record == expected or codes & vague, (number, run.record, expected)
        seen |= codes
        settled = settles(session)
        session.global_memory.write(PROGRAM_AT, after)
        record = session.run_program(PROGRAM_AT, 2, watchdog=20_000).record
        # An engine that still works may yet make an error.
        late = not settled and record.code == ProgramError.ENGINE
        assert late or record == ProgramRecord(ProgramError.NO_END, Engine.NONE, 0, 2), (number, record)
        assert late or (session.shared_memory.read(COPIED, 64) == gmem[first : first + 64]).all()
        if run.record and run.record.code == ProgramError.WATCHDOG:
            session.reset()
            resets += 1
    assert len(seen) > 8 and resets < count // 4 and looped == endless, (seen, resets, looped)
