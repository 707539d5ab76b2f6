"""The command processor with models of memory, barriers, registers and engines: what is handed out, and the record."""

import random

import numpy as np
import pytest

from support.program_bench import STOP, ProgramBench
from support.selection import grid
from tilewright.golden import ProgramRecord, conv_words, program_bytes, program_word, tmau_word
from tilewright.golden.core.processor import Loops, check_range, check_word, kind_of
from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.tmau.checks import Windows
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams, core_regions
from tilewright.hw.core.program.processor import CommandProcessor
from tilewright.spec import BarrierOp
from tilewright.spec.core import ARGUMENTS, PROGRAM_WORDS, WRITABLE, Engine, Kind, ProgramError
from tilewright.spec.pe import Operation
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

PARAMS = CORE_PRESETS["unit"].replace(conv=CONV_UNIT_PRESETS["unit"], program=ProgramParams())
REGIONS = core_regions(PARAMS)
BYTES = 1 << 16
CODE = 0x8000  # instructions


def processor():
    return CommandProcessor(PARAMS, REGIONS)


def made_bench(memory, mode="none"):
    return ProgramBench(elaborated(processor), memory, mode)


class Reference:
    """What a program hands out, in order, and why it stops; engines have no errors."""

    def __init__(self, memory, address, words, window=None):
        self.events = []
        self._memory, self._address, self._words = memory, address, words
        self._window = Windows(window)
        self.index, self._tag = 0, 0
        code = self._run()
        self.record = code and ProgramRecord(code, Engine.NONE, self._tag, self.index)

    def _word(self):
        self._tag = 0
        if self.index >= self._words:
            return None
        at = self._address + 64 * self.index
        return int.from_bytes(self._memory[at : at + 64].tobytes(), "little")

    def _run(self):
        code = check_range(self._address, 64 * self._words, self._window, PARAMS.tmau.addr_width)
        loops = Loops()
        while not code:
            word = self._word()
            if word is None:
                return ProgramError.NO_END
            self._tag = word >> 16 & 0xFFFF
            code = check_word(word, True, PARAMS.smem.size_bytes, self._window, PARAMS.tmau.addr_width)
            if code:
                return code
            kind = kind_of(word)
            fields = PROGRAM_WORDS[kind].unpack(word)
            if kind == Kind.END:
                return None
            if kind == Kind.LOOP:
                place = loops.next(self.index, fields["count"], fields["back"])
                if isinstance(place, ProgramError):
                    return place
                self.index = place
                continue
            code = self._carry_out(kind, word, fields)
            self.index += not code
        return code

    def _carry_out(self, kind, word, fields):
        if kind == Kind.TMAU:
            self.events.append(("command", word & (1 << 508) - 1))
        elif kind == Kind.CONV:
            halves = []
            for _ in range(2):
                self.index += 1
                halves.append(self._word())
                if halves[-1] is None:
                    return ProgramError.NO_END
            self.events.append(("job", halves[0] | halves[1] << 512))
        elif kind == Kind.PE:
            for number in range(fields["count"]):
                at = (fields["address"] + 16 * number) % BYTES
                self.events.append(("instruction", int.from_bytes(self._memory[at : at + 16].tobytes(), "little")))
        elif kind == Kind.KERNEL:
            for number, value in enumerate(fields["argument"][: fields["count"]]):
                movu = instruction_word(Operation.MOVU, ud=fields["first"] + number, imm=value)
                self.events.append(("instruction", movu))
            self.events.append(("instruction", instruction_word(Operation.CALL, imm=fields["entry"])))
        elif kind == Kind.REGISTER:
            base = REGIONS[Engine(fields["engine"]).name.lower()].base
            self.events.append(("register", base + fields["offset"], fields["value"]))
        elif kind == Kind.BARRIER and fields["operation"] != BarrierOp.TRY_WAIT:
            self.events.append(("barrier", fields["operation"], fields["barrier"], fields["value"]))
        return None


def memory_with(*parts):
    """Random bytes, and words of programs at addresses."""
    memory = np.random.default_rng(3).integers(0, 256, BYTES, np.uint8)
    for address, words in parts:
        raw = program_bytes(words)
        memory[address : address + len(raw)] = raw
    return memory


def random_word(rng):
    """A word, or those of a job, that is mostly right."""
    tag = rng.getrandbits(16)
    kind = rng.choice([kind for kind in Kind if kind != Kind.END])
    if kind == Kind.TMAU:
        return [tmau_word(rng.getrandbits(508) & ~(1 << 31))]
    if kind == Kind.CONV:
        return conv_words(rng.getrandbits(1024))
    if kind == Kind.PE:
        return [program_word(kind, count=rng.randrange(1, 12), address=CODE + 64 * rng.randrange(64), tag=tag)]
    if kind == Kind.BARRIER:
        op = rng.choice(list(BarrierOp))
        value = rng.randrange(2) if op == BarrierOp.TRY_WAIT else rng.randrange(1, 100)
        return [program_word(kind, operation=op, barrier=8 * rng.randrange(64), value=value, tag=tag)]
    if kind == Kind.REGISTER:
        engine = rng.choice(list(Engine)[1:])
        offset = rng.choice(list(WRITABLE[engine]))
        return [program_word(kind, engine=engine, offset=offset, value=rng.getrandbits(32), tag=tag)]
    if kind == Kind.KERNEL:
        count = rng.randrange(ARGUMENTS + 1)
        arguments = [rng.getrandbits(32) for _ in range(count)] + [0] * (ARGUMENTS - count)
        first, entry = rng.randrange(256 - count), rng.getrandbits(32)
        return [program_word(kind, first=first, count=count, argument=arguments, entry=entry, tag=tag)]
    if kind == Kind.LOOP:
        return [program_word(kind, count=rng.randrange(1, 4), back=rng.randrange(1, 5), tag=tag)]
    return [program_word(kind, engines=rng.randrange(8), tag=tag)]


def random_program(rng, length, wrong=0.0):
    """Words; with probability ``wrong`` one has a bit that it should not have, or not."""
    words = []
    for _ in range(length):
        made = random_word(rng)
        if rng.random() < wrong:
            made[0] ^= 1 << rng.choice([4, 5, 31, 32, 40, 64, 66, 95, 127, 128, 400, 507, 508, 509, 510, 511])
        words += made
    return [*words, program_word("end", interrupt=rng.randrange(2), tag=7)]


def loops_end(words):
    """Whether it hands out a number of words that a simulation can."""
    loops, index = Loops(), 0
    for _ in range(300):
        if index >= len(words) or kind_of(words[index]) in (None, Kind.END):
            return True
        kind = kind_of(words[index])
        if kind == Kind.LOOP:
            fields = PROGRAM_WORDS[kind].unpack(words[index])
            index = loops.next(index, fields["count"], fields["back"])
            if isinstance(index, ProgramError):
                return True
        else:
            index += 3 if kind == Kind.CONV else 1
    return False


def programs(seed, count, wrong):
    rng, made = random.Random(seed), []
    while len(made) < count:
        words = random_program(rng, rng.randrange(0, 14), wrong)
        if loops_end(words):
            made.append(words)
    return made


# Half of the programs with wrong words have none.
@grid(lambda mode, wrong: wrong, mode=STALL_MODES, wrong=[0.1, 0.0])
def test_random_programs(mode, wrong):
    many = programs(f"{mode}{wrong}", 16, wrong)
    memory = memory_with(*((0x400 * number, words) for number, words in enumerate(many)))
    bench = made_bench(memory, mode)
    seen = set()

    async def host(ctx):
        for number, words in enumerate(many):
            address = 0x400 * number
            reference = Reference(memory, address, len(words))
            bench.events.clear()
            await bench.start(ctx, address, len(words))
            record = await bench.end(ctx)
            assert record == reference.record, (number, reference.events[-3:], bench.events[-3:])
            assert bench.events == reference.events, number
            ended = PROGRAM_WORDS[Kind.END].unpack(words[-1])["interrupt"] if record is None else 0
            assert await bench.access(ctx, "irq_status") == (ended << 1 if record is None else 1)
            assert await bench.access(ctx, "status") == (1 | (4 if record is None else 2))
            assert ctx.get(bench.dut.irq) == (record is not None or ended)
            seen.add(record and record.code)

    bench.simulate(host, deadline=400_000)
    assert None in seen and (not wrong or len(seen) > 3), seen
    for _, ident, address, beats in bench.bus.requests:
        assert ident == 3 and address % (16 * beats) == 0


def run_one(words, *, mode="none", setup=None, during=None, count=None, **options):
    """Runs a program, and then one that only ends; returns the bench and the record."""
    memory = memory_with((0, words), (0x8000 - 64, [program_word("end")]))
    bench, records = made_bench(memory, mode), []

    async def host(ctx):
        if setup:
            setup(ctx, bench)
        await bench.start(ctx, options.pop("address", 0), len(words) if count is None else count, **options)
        if during:
            await during(ctx, bench)
        records.append(await bench.end(ctx))
        bench.bus.failing.clear()
        ctx.set(bench.dut.failed, 0)
        await bench.start(ctx, 0x8000 - 64, 1)
        assert await bench.end(ctx) is None
        # The events of the first program stay where they are.

    bench.simulate(host)
    return bench, records[0]


END = program_word("end", interrupt=1, tag=9)
WAIT = program_word("barrier", operation="try_wait", barrier=64, tag=3)


def command(tag):
    return tmau_word(tag << 16 | 5)


@pytest.mark.parametrize("place", range(0, 256, 16))
def test_a_word_whose_read_fails(place):
    """By any of its beats: the word is not carried out, and those before it are."""
    words = [command(1), command(2), command(3), END]
    bench, record = run_one(words, setup=lambda ctx, bench: bench.bus.failing.add(place))
    assert record == ProgramRecord(ProgramError.BUS, Engine.NONE, 0, place // 64)
    assert bench.events == [("command", tag << 16 | 5) for tag in (1, 2, 3)][: place // 64]


@pytest.mark.parametrize("half", [1, 2])
def test_a_half_of_a_job_whose_read_fails(half):
    words = [*conv_words(5 << 16), END]
    bench, record = run_one(words, setup=lambda ctx, bench: bench.bus.failing.add(64 * half))
    assert record == ProgramRecord(ProgramError.BUS, Engine.NONE, 0, half)
    assert bench.events == []


@pytest.mark.parametrize("line", range(3))
def test_instructions_whose_read_fails(line):
    """Those of the lines before have been handed over."""
    words = [command(1), program_word("pe", count=11, address=CODE, tag=8), command(2), END]
    bench, record = run_one(words, setup=lambda ctx, bench: bench.bus.failing.add(CODE + 64 * line + 32))
    assert record == ProgramRecord(ProgramError.BUS, Engine.NONE, 8, 1)
    assert [name for name, _ in bench.events] == ["command"] + 4 * line * ["instruction"]


@pytest.mark.parametrize("watchdog", [1, 40, 200])
def test_a_wait_that_never_ends(watchdog):
    words = [command(1), WAIT, command(2), END]
    bench, record = run_one(words, setup=lambda ctx, bench: bench.never.add(64), watchdog=watchdog)
    assert record in [ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 3 if watchdog > 1 else 0, watchdog > 1)]
    assert len(bench.events) == (watchdog > 1)
    assert len(bench.asked) <= 1 + watchdog // 64


@pytest.mark.parametrize("cycles", range(0, 120, 7))
def test_the_host_stops_it(cycles):
    words = [*[command(tag) for tag in range(6)], WAIT, END]

    async def during(ctx, bench):
        await ctx.tick().repeat(cycles + 1)
        await bench.access(ctx, "control", STOP)

    bench, record = run_one(words, setup=lambda ctx, bench: bench.never.add(64), during=during)
    assert record.code == ProgramError.STOPPED
    # What is offered already is still handed over.
    assert len(bench.events) in (record.word, record.word + (record.tag == record.word < 6))
    assert record.tag in ((0, 3) if record.word == 6 else (0, record.word))


@pytest.mark.parametrize("engine", list(Engine)[1:])
def test_an_error_of_an_engine(engine):
    """Of several the first engine counts; it stops what waits, and what follows."""

    async def during(ctx, bench):
        await ctx.tick().until(bench.dut.barrier_results.valid)
        ctx.set(bench.dut.failed, 7 & ~((1 << engine - 1) - 1))
        ctx.set(bench.dut.tags[engine - 1], 77)

    bench, record = run_one([WAIT, command(1), END], setup=lambda ctx, bench: bench.never.add(64), during=during)
    assert record == ProgramRecord(ProgramError.ENGINE, engine, 77, 0)
    assert bench.events == []


@pytest.mark.parametrize("engines", range(8))
def test_waits_for_engines(engines):
    """A wait for those that it names, for all where it names none; and the end for all."""
    names = [list(Engine)[1:][number] for number in range(3) if engines >> number & 1] or list(Engine)[1:]
    cycles = {}

    async def during(ctx, bench):
        ctx.set(bench.dut.idle, 0)
        for cycle in range(500):
            busy = cycle < 200
            ctx.set(bench.dut.idle, 0 if busy else 7 if cycle >= 300 else sum(1 << name - 1 for name in names))
            _, _, running, done, kind = await ctx.tick().sample(bench.dut.running, bench.dut.word_done,
                                                               bench.dut.word_kind)  # fmt: skip
            if done:
                cycles[kind] = cycle
            if not running:
                break

    _, record = run_one([program_word("wait_all", engines=engines), command(3), END], during=during)
    assert record is None
    end = 200 if len(names) == 3 else 300
    assert 200 < cycles[Kind.WAIT_ALL] < 220 and end < cycles[Kind.END] < end + 30


@pytest.mark.parametrize("address", [32, 1 << 32, (1 << 32) - 64, 1 << 40])
def test_a_program_that_is_nowhere(address):
    """Not aligned, or not in the address space; ends there all the same if it has no words."""
    bench, record = run_one([END, END], address=address)
    assert record == ProgramRecord(ProgramError.ADDRESS, Engine.NONE, 0, 0)
    assert len(bench.bus.requests) <= 1 + ProgramParams().words


@pytest.mark.parametrize("window", [(0, 4095), (4096, 8191), (0x9000, 0xFFFF), (1 << 33, 1 << 34)])
def test_a_window(window):
    words = [program_word("pe", count=1, address=4096), END]
    bench, record = run_one(words, window=window)
    index = 1 if window == (0, 4095) else 0
    assert record == ProgramRecord(ProgramError.WINDOW, Engine.NONE, 0, 0), index
    for _, _, address, _ in bench.bus.requests[:4]:
        assert window[0] <= address <= window[1] or address >= 0x7FC0


def test_no_read_leaves_the_program():
    words = [program_word("loop", count=3, back=1)] * 3
    words = [command(1), *words[:1], command(2)]
    bench, record = run_one(words, count=3)
    assert record == ProgramRecord(ProgramError.NO_END, Engine.NONE, 0, 3)
    assert [value >> 16 for _, value in bench.events] == [1, 1, 1, 2]
    assert max(address for _, _, address, _ in bench.bus.requests if address < 0x4000) < 64 * 3


def test_an_engine_that_takes_nothing():
    """The watchdog stops the program; what was offered is taken later, once, and nothing after it."""
    words = [program_word("pe", count=6, address=CODE), command(1), END]

    async def during(ctx, bench):
        async def hold():
            ctx.set(bench.dut.instructions.ready, 0)

        while ctx.get(bench.dut.running):
            await hold()
            await ctx.tick()

    bench = made_bench(memory_with((0, words), (0x7FC0, [END])))
    bench.taker = (lambda taker: lambda port, name: never if name == "instruction" else taker(port, name))(bench.taker)

    async def never(ctx):
        pass

    async def host(ctx):
        await bench.start(ctx, 0, 3, watchdog=100)
        assert await bench.end(ctx) == ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, 0)
        assert ctx.get(bench.dut.instructions.valid)
        await bench.start(ctx, 0x7FC0, 1)
        await ctx.tick().repeat(100)
        assert ctx.get(bench.dut.running), "the end waits for it"
        ctx.set(bench.dut.instructions.ready, 1)
        assert await bench.end(ctx) is None
        assert not ctx.get(bench.dut.instructions.valid)

    bench.simulate(host)
    assert bench.events == []
