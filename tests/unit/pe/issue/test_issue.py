"""Decoder and Issue: items that leave, their order and contents; the test models the other blocks."""

import random
from types import SimpleNamespace

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from support.pe_accesses import OffsetSets
from tilewright.golden.pe.checks import decode, refusal
from tilewright.golden.pe.kernel import Kernels
from tilewright.hw.pe.issue.decode import Decoder
from tilewright.hw.pe.issue.issue import Issue
from tilewright.hw.pe.issue.scoreboard import LOADS
from tilewright.hw.pe.layouts import BASES_SETS, JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import INSTRUCTIONS, MmType, Operation, PeError, SegmentElement, Source
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, set_together, watch_stream

#: Without arithmetic, which takes a mov or setp away from Issue.
PARAMS = PE_PRESETS["unit"].replace(threads=6, types=("i8", "f16"), units=())
KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}
#: Element and rank of each segment; None: wrong.
SEGMENTS = [(SegmentElement.S8, 2), (SegmentElement.F16, 3), (SegmentElement.U8, 1), None, (SegmentElement.S32, 1),
            (SegmentElement.S16, 2), (SegmentElement.U8, 4), None]  # fmt: skip


class Front(Elaboratable):
    """Decoder and Issue."""

    def __init__(self, cores=1):
        self.decoder, self.issue = Decoder(PARAMS), Issue(PARAMS, cores)

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder, m.submodules.issue = self.decoder, self.issue
        connect(m, self.decoder.o, self.issue.i)
        return m


def pack(operation, **fields):
    return INSTRUCTIONS[operation].pack(opcode=operation, **fields)


def random_instruction(rng):
    """Mostly right, and mostly with one of few offset registers, so that they are reused and overwritten."""
    operations = [Operation.MM] * 9 + [Operation.LD, Operation.ST, Operation.MOVU] * 2
    operations += [operation for operation in Operation if operation <= Operation.HALT]
    operation = rng.choice(operations)
    fields = {
        "guard": rng.randrange(2),
        "predicate": rng.randrange(8),
        "rf": rng.choice([20] * 8 + [24, rng.randrange(34)]),
        "ur": rng.choice([0] * 8 + [1, 2, 3, rng.randrange(10)]),
        "imm": rng.getrandbits(32),
        "rc": rng.choice([rng.randrange(12)] * 4 + [rng.randrange(40), rng.getrandbits(16)]),
        "ra": rng.choice([rng.randrange(30), rng.randrange(30), 30, 31]),
        "ka": rng.choice([1, 1, 1, 2, 3, 4]),
        "kb": rng.choice([1, 1, 1, 1, 2, 4]),
        "transpose": rng.random() < 0.2,
        "type": rng.choice([rng.randrange(4)] * 4 + [rng.randrange(12)]),
        "n": rng.choice([1, 2, 4, 9, 20, 0]),
        "parity": rng.randrange(2),
        "pd": rng.randrange(8),
        "element": 0,
        "compare": rng.randrange(10),
    }
    fields["rd"] = fields["rs"] = rng.choice([rng.randrange(32), rng.randrange(32), rng.randrange(40)])
    fields["ud"] = rng.choice([0, 0, 1, 2, rng.randrange(9)])
    fields["source"], fields["core"] = rng.randrange(2), rng.randrange(2)
    if operation == Operation.MOVU:
        fields["imm"] = rng.choice([0] * 9 + [rng.randrange(8), rng.randrange(8), 8, 1 << 31])
    if operation == Operation.BAR_WAIT:
        fields["imm"] = rng.choice([0x108, 0x3FF8, 0x104, 0x4000])
    fmt = INSTRUCTIONS[operation]
    return pack(operation, **{field.name: fields[field.name] for field in fmt.fields if field.name != "opcode"})


def steps(mm):
    return -(-PARAMS.threads // mm["ka"])


class Reference:
    """What is to leave, instruction by instruction, and the registers that each reads and writes.

    A core's stop refuses instructions of these numbers, and gives up waits of those.
    """

    def __init__(self, refused=(), given_up=()):
        self.refused, self.given_up = refused, given_up
        segments = [known and SimpleNamespace(element=known[0], rank=known[1]) for known in SEGMENTS]
        self.pe = SimpleNamespace(
            sizes=PARAMS,
            uniform=[None] * PARAMS.uniform_regs,
            segments=segments,
            smem=range(PARAMS.smem.size_bytes),
            kernels=Kernels(PARAMS),
        )
        self.sets = OffsetSets()
        self.flush = 1

    def events(self, word, number):
        """Names and contents of the items that leave for ``word``, in order."""
        values = decode(word)
        code, register = (PeError.OPCODE, 0) if values is None else refusal(values, self.pe)
        if number in self.refused:
            code, register, self.flush = PeError.STOPPED, 0, 1
        report = ("fault", {"code": code, "number": number, "register": register, "first": 0,
                            "last": PARAMS.threads - 1 if code else 0})  # fmt: skip
        if code:
            return [report]
        operation = Operation(word & 0xFF)
        fields = INSTRUCTIONS[operation].unpack(word)
        if operation in KINDS:
            return self._job(operation, fields, number)
        if operation == Operation.MOVU:
            self.pe.uniform[fields["ud"]] = fields["imm"]
            return [report]
        if operation in (Operation.MOV, Operation.SETP):
            register = fields["rd" if operation == Operation.MOV else "rs"]
            if operation == Operation.MOV:
                self.sets.write({register})
            item = {"setp": operation == Operation.SETP, "register": register}
            item |= {"core": fields["core"]} if operation == Operation.MOV else {}
            item |= {name: fields[name] for name in ("imm", "source", "guard", "predicate")}
            if operation == Operation.SETP:
                item |= {"compare": fields["compare"], "target": fields["pd"]}
            return [("lane", item), report]
        self.flush = 1
        if number in self.given_up:
            report[1].update(code=PeError.STOPPED, last=PARAMS.threads - 1)
        item = {"operation": operation}
        if operation == Operation.BAR_WAIT:
            item |= {"address": fields["imm"], "parity": fields["parity"]}
        return [("wait", item), report]

    def _job(self, operation, fields, number):
        segment = self.pe.uniform[fields["ur"]]
        offsets = set(range(fields["rf"], fields["rf"] + SEGMENTS[segment][1]))
        by_rows = operation == Operation.MM and fields["transpose"]
        key = (segment, fields["rf"], by_rows)
        bases_set, rebuild = choice = self.sets.find(key)
        self.sets.use(choice, key, offsets)
        names = ("rf", "imm", "guard", "predicate")
        job = {"kind": KINDS[operation], "number": number, "segment_number": segment, "bases_set": bases_set,
               "rebuild": rebuild, "flush": self.flush, **{name: fields[name] for name in names}}  # fmt: skip
        self.flush = 0
        if operation != Operation.MM:
            first = fields["rd" if operation == Operation.LD else "rs"]
            registers = set(range(first, first + fields["n"]))
            job |= {"register": first, "count": fields["n"]}
            if operation == Operation.LD:
                self.sets.write(registers)
                return [("load", registers), ("job", job)]
            return [("job", job)]
        shape = {"ka": fields["ka"] - 1, "kb": fields["kb"] - 1}
        job |= {"register": fields["rc"], "transpose": fields["transpose"], **shape}
        accumulators = {min(fields["rc"] + step, PARAMS.regs - 1) for step in range(steps(fields))}
        self.sets.write(accumulators)
        factors = set(range(fields["ra"], fields["ra"] + PARAMS.factor_regs))
        multiply = {"type": fields["type"], "ra": fields["ra"], **shape}
        return [("mm", (accumulators, factors)), ("job", job), ("multiply", multiply)]


def registers(span):
    return set(range(span.first, span.last + 1))


class Neighbours:
    """Models all other blocks, pauses at random, and logs the items that leave."""

    def __init__(self, front, rng, stall):
        self.dut, self.rng, self.stall = front.issue, rng, stall
        self.log, self.cycle = [], 0
        self.pending = []  # (kind, written registers, read registers), oldest first
        self.own = None  # the mm or load that was added last
        self.unread = 0  # cycles until the loading side has read all registers

    def _clear(self, ctx):
        access = self.dut.access
        accessed = registers(ctx.get(access.registers)) if ctx.get(access.valid) else set()
        reads, writes = (set(), accessed) if ctx.get(access.writes) else (accessed, set())
        return not any((reads | writes) & written or writes & read for _, written, read in self.pending)

    async def run(self, ctx):
        dut, rng = self.dut, self.rng
        streams = {"job": dut.jobs, "multiply": dut.multiplies, "lane": dut.lane_operations, "wait": dut.waits,
                   "fault": dut.faults}  # fmt: skip
        while True:
            paces = [(port.ready, rng.random() >= self.stall) for port in streams.values()]
            limits = {"mm": PARAMS.mm_in_flight, "load": LOADS}
            for port, (kind, limit) in zip((dut.mm_registers, dut.load_registers), limits.items(), strict=True):
                paces.append((port.ready, sum(pending[0] == kind for pending in self.pending) < limit))
            set_together(ctx, *paces)
            set_together(ctx, (dut.access.clear, self._clear(ctx)), (dut.loading_idle, not self.unread))
            number = ctx.get(dut.segment.number)
            self._log(ctx, streams)
            await ctx.tick()
            self.cycle += 1
            self.unread = max(0, self.unread - 1)
            if self.pending and (not self.stall or rng.random() < 0.2):
                self.pending.pop(0)
            known = SEGMENTS[number]
            entry = {"good": 0} if known is None else {
                "good": 1, "element_log2": known[0] & 3, "rank": known[1] - 1, "base": number}  # fmt: skip
            ctx.set(dut.segment.entry, entry)

    def _log(self, ctx, streams):
        dut = self.dut
        mm, load = dut.mm_registers, dut.load_registers
        if ctx.get(mm.valid) and ctx.get(mm.ready):
            accumulators, factors = map(registers, (ctx.get(mm.payload.accumulators), ctx.get(mm.payload.factors)))
            self._add("mm", accumulators, factors, (accumulators, factors))
        if ctx.get(load.valid) and ctx.get(load.ready):
            written = registers(ctx.get(load.payload))
            self._add("load", written, set(), written)
        for name, port in streams.items():
            if ctx.get(port.valid) and ctx.get(port.ready):
                item = ctx.get(port.payload)
                self.log.append((self.cycle, name, item))
                if name == "job":
                    self._check_job(item)
                    self.unread = 1 + (self.rng.randrange(20) if self.stall else 0)
                if name == "lane":
                    assert not self.unread
                    if not (item.setp and item.source == Source.THREAD):
                        self._check_free({item.register}, writes=not item.setp)

    def _add(self, kind, written, read, item):
        self.own = (kind, written, read)
        self.pending.append(self.own)
        self.log.append((self.cycle, kind, item))

    def _check_free(self, wanted, *, writes, own=None):
        for pending in self.pending:
            if pending is not own:
                assert not wanted & pending[1]
                assert not writes or not wanted & pending[2]

    def _check_job(self, job):
        own = self.own if job.kind != JobKind.STORE else None
        moved = set(range(job.register, job.register + job.count))
        self._check_free(set(range(job.rf, job.rf + job.segment.rank + 1)), writes=False, own=own)
        if job.kind != JobKind.MULTIPLY:
            self._check_free(moved, writes=job.kind == JobKind.LOAD, own=own)


def run(words, *, mode="none", seed=0, also=(), cores=1):
    """Everything that leaves, as (cycle, name, contents)."""
    front, rng = elaborated(Front, cores), random.Random(f"issue {mode} {seed}")
    neighbours = Neighbours(front, rng, STALL_MODES[mode]["stall"])
    done = []

    async def source(ctx):
        await send(ctx, front.decoder.i, words, idle=STALL_MODES[mode]["idle"], seed=seed)
        while not ctx.get(front.decoder.idle):
            await ctx.tick()
        done.append(True)

    issue = front.issue
    outputs = (issue.jobs, issue.multiplies, issue.lane_operations, issue.waits, issue.faults, issue.mm_registers,
               issue.load_registers)  # fmt: skip
    background = [neighbours.run, *map(watch_stream, outputs), *(script(front) for script in also)]
    simulate(front, source, background=background, deadline=60 * len(words) + 200)
    return neighbours.log


def compare(log, words, **stop):
    """Checks a log against the reference. Of an mm, job and multiply may leave in any order, both after the entry."""
    reference, place = Reference(**stop), 0
    for number, word in enumerate(words):
        events = reference.events(word, number)
        entries = log[place : place + len(events)]
        place += len(events)
        if len(events) == 3:
            entries[1:] = sorted(entries[1:], key=lambda entry: entry[1])
        for (name, expected), (_, entry_name, item) in zip(events, entries, strict=True):
            assert name == entry_name, f"instruction {number}"
            if isinstance(expected, dict):
                for field, value in expected.items():
                    # While the core is stopped a job flushes anyway.
                    given = item[field] and value if stop and field == "flush" else item[field]
                    assert given == value, f"{field} of {name} of instruction {number}"
            else:
                assert item == expected, f"instruction {number}"
    assert place == len(log)
    return reference


@pytest.mark.parametrize("mode", STALL_MODES)
def test_random_programs(mode):
    rng = random.Random(f"issue program {mode}")
    words = [random_instruction(rng) for _ in range(330)]
    log = run(words, mode=mode)
    compare(log, words)
    codes = {item.code for _, name, item in log if name == "fault"}
    assert codes == set(range(PeError.BARRIER + 1))
    jobs = [item for _, name, item in log if name == "job"]
    assert {job.kind for job in jobs} == set(JobKind)
    assert {job.rebuild for job in jobs} == {job.flush for job in jobs} == {0, 1}
    assert {job.bases_set for job in jobs} == set(range(BASES_SETS))


@pytest.mark.parametrize("mode", STALL_MODES)
def test_a_core_that_is_stopped_at_any_time(mode):
    """Instructions that start then are refused, waits may be, and all others proceed as before."""
    rng, refused, given_up = random.Random(f"issue stop {mode}"), set(), set()

    def script(front):
        issue = front.issue
        begins = issue.starts & issue.i.valid & issue.stopped
        waited = issue.waits.valid & issue.waits.ready & issue.wait_refused

        async def stop(ctx):
            while True:
                for stopped in (0, 1):
                    ctx.set(issue.stopped, stopped)
                    for _ in range(rng.choice([1, 2, 5, 60])):
                        ctx.set(issue.wait_refused, stopped and rng.random() < 0.5)
                        *_, number, begun, over = await ctx.tick().sample(issue.i.payload.number, begins, waited)
                        refused.update([number] * begun)
                        given_up.update([number] * over)

        return stop

    words = [random_instruction(rng) for _ in range(500)]
    compare(log := run(words, mode=mode, also=[script], cores=2), words, refused=refused, given_up=given_up)
    assert len(refused) > 50 and (given_up or not STALL_MODES[mode]["stall"])
    assert sum(name == "job" for _, name, _ in log) > 20


NAMED = pack(Operation.MOVU, ud=0, imm=0)


def mm(**fields):
    return pack(Operation.MM, **{"rf": 20, "ra": 30, "type": MmType.S8S8, **fields})


def cycles(log, wanted):
    return [cycle for cycle, name, _ in log if name == wanted]


def test_an_mm_takes_four_cycles():
    words = [NAMED, *(mm(rc=8 * number % 16) for number in range(20))]
    log = run(words)
    compare(log, words)
    jobs = cycles(log, "job")
    assert jobs == cycles(log, "multiply") == list(range(jobs[0], jobs[0] + 4 * 20, 4))


@pytest.mark.parametrize(("strobe", "rebuild"), [("segment_written", 1), ("page_written", 0)])
def test_tables_that_are_written_are_looked_at_again(strobe, rebuild):
    def script(front):
        async def write(ctx):
            while True:
                number = (await ctx.tick().sample(front.issue.i.payload.number, front.issue.jobs.valid))[2:]
                ctx.set(getattr(front.issue, strobe), number == (4, 1))

        return write

    words = [NAMED, *(mm() for _ in range(8))]
    jobs = [item for _, name, item in run(words, also=[script]) if name == "job"]
    assert [job.flush for job in jobs] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert [job.rebuild for job in jobs] == [1, 0, 0, 0, rebuild, 0, 0, 0]


def test_idle():
    front = elaborated(Front)

    async def testbench(ctx):
        assert ctx.get(front.issue.idle)
        await send(ctx, front.decoder.i, [NAMED])
        await ctx.tick()
        assert not ctx.get(front.issue.idle)
        ctx.set(front.issue.faults.ready, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(front.issue.idle)

    simulate(front, testbench)
