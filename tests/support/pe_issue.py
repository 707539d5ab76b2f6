"""Decoder, Router and Issue with models of all other blocks: what leaves, checked instruction by instruction."""

import random
from types import SimpleNamespace

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from support.pe_accesses import OffsetSets
from tilewright.golden.pe.checks import refusal
from tilewright.golden.pe.kernel import Kernels
from tilewright.hw.pe.arithmetic.router import Router
from tilewright.hw.pe.issue.decode import Decoder
from tilewright.hw.pe.issue.issue import Issue
from tilewright.hw.pe.issue.scoreboard import LOADS
from tilewright.hw.pe.layouts import JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, Operation, PeError, SegmentElement, Source
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, set_together, watch_stream

__all__ = ["SIZES", "Front", "compare", "pack", "random_instruction", "run"]

_UNIT = PE_PRESETS["unit"].replace(threads=6, types=("i8", "f16"))
#: Without arithmetic, which takes a mov or setp away from Issue; and with it.
SIZES = {"alone": _UNIT.replace(units=()), "arithmetic": _UNIT.replace(units=("alu", "div"))}
#: Cycles from the start of an operation to its result.
_LATENCY = 7
_KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}
#: Element and rank of each segment; None: wrong.
_SEGMENTS = [(SegmentElement.S8, 2), (SegmentElement.F16, 3), (SegmentElement.U8, 1), None, (SegmentElement.S32, 1),
            (SegmentElement.S16, 2), (SegmentElement.U8, 4), None]  # fmt: skip


class Front(Elaboratable):
    """Decoder and Issue, and with arithmetic Router between them."""

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.decoder, self.issue = Decoder(params), Issue(params, cores)
        self.router = Router(params, cores) if params.units else None

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder, m.submodules.issue = self.decoder, self.issue
        if self.router is None:
            connect(m, self.decoder.o, self.issue.i)
            return m
        m.submodules.router = self.router
        connect(m, self.decoder.o, self.router.i)
        connect(m, self.router.others, self.issue.i)
        m.d.comb += [
            self.decoder.passes.eq(self.router.passes | self.issue.takes),
            *(
                getattr(self.router, name).eq(getattr(self.issue, name))
                for name in ("rests", "turn", "uniform_set", "uniform")
            ),
        ]
        if self._cores > 1:
            m.d.comb += self.router.stopped.eq(self.issue.stopped)
        return m


def pack(operation, **fields):
    """The word of an instruction."""
    return INSTRUCTIONS[operation].pack(opcode=operation, **fields)


def random_instruction(rng, params):
    """Mostly right, and mostly with one of few offset registers, so that they are reused and overwritten."""
    operations = [Operation.MM] * 9 + [Operation.LD, Operation.ST, Operation.MOVU] * 2
    operations += [operation for operation in Operation if operation <= Operation.HALT]
    operations += [Operation.ARITH] * 6 if params.units else []
    operation = rng.choice(operations)
    if operation == Operation.ARITH:
        return _random_arithmetic(rng)
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


def _random_arithmetic(rng):
    """An addition, or a comparison, of registers that jobs use too; now and then of a uniform register."""
    kind = rng.choice([Operand.REGISTER] * 3 + [Operand.IMMEDIATE, Operand.UNIFORM])
    b = {"rb": rng.randrange(34)} if kind == Operand.REGISTER else {"rb": rng.randrange(9)}
    b = {"imm": rng.getrandbits(32)} if kind == Operand.IMMEDIATE else b
    function = rng.choice([Function.ADD, Function.ADD, Function.LT])
    rd = rng.randrange(8) if function == Function.LT else rng.choice([20, rng.randrange(34)])
    return pack(Operation.ARITH, function=function, b=kind, rd=rd, ra=rng.randrange(33), guard=rng.randrange(2),
                predicate=rng.randrange(8), **b)  # fmt: skip


def _steps(params, mm):
    return -(-params.threads // mm["ka"])


class _Reference:
    """What is to leave, instruction by instruction, and the registers that each reads and writes.

    A core's stop refuses instructions of these numbers, and gives up waits of those.
    """

    def __init__(self, params, refused=(), given_up=()):
        self.params, self.refused, self.given_up = params, refused, given_up
        segments = [known and SimpleNamespace(element=known[0], rank=known[1]) for known in _SEGMENTS]
        self.pe = SimpleNamespace(
            sizes=self.params,
            uniform=[None] * self.params.uniform_regs,
            segments=segments,
            smem=range(self.params.smem.size_bytes),
            kernels=Kernels(self.params),
        )
        self.sets = OffsetSets()
        # With arithmetic: the set that the next job replaces, which depends on when operations after it have started.
        self.replaced = None
        self.flush = 1

    def events(self, word, number):
        """Names and contents of the items that leave for ``word``, in order."""
        code, register = refusal(word, self.pe)
        if number in self.refused:
            code, register, self.flush = PeError.STOPPED, 0, 1
        report = ("fault", {"code": code, "number": number, "register": register, "first": 0,
                            "last": self.params.threads - 1 if code else 0})  # fmt: skip
        if code:
            return [report]
        operation = Operation(word & 0xFF)
        fields = INSTRUCTIONS[operation].unpack(word)
        if operation in _KINDS:
            return self._job(operation, fields, number)
        if operation == Operation.MOVU:
            self.pe.uniform[fields["ud"]] = fields["imm"]
            return [report]
        if self.params.units and operation in (Operation.ARITH, Operation.MOV, Operation.SETP):
            return [("operation", self._operation(operation, fields))]
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
            report[1].update(code=PeError.STOPPED, last=self.params.threads - 1)
        item = {"operation": operation}
        if operation == Operation.BAR_WAIT:
            item |= {"address": fields["imm"], "parity": fields["parity"]}
        return [("wait", item), report]

    def _operation(self, operation, fields):
        """What the arithmetic is given; a register that it writes is written before any job that follows."""
        item = {name: fields[name] for name in ("guard", "predicate")}
        compares = operation == Operation.SETP or fields.get("function") == Function.LT
        item |= {"to_predicate": compares, "target": fields["pd" if operation == Operation.SETP else "rd"]}
        if not compares:
            self.sets.write({item["target"]})
        if operation == Operation.ARITH:
            b = fields["b"]
            item |= {"function": fields["function"], "a": fields["ra"], "reads": 1 | (b == Operand.REGISTER) << 1}
            item |= {"b": fields["rb"]} if b == Operand.REGISTER else {}
            item |= {"scalar": fields["imm"]} if b == Operand.IMMEDIATE else {}
            item |= {"scalar": self.pe.uniform[fields["rb"]]} if b == Operand.UNIFORM else {}
        return item

    def _job(self, operation, fields, number):
        segment = self.pe.uniform[fields["ur"]]
        offsets = set(range(fields["rf"], fields["rf"] + _SEGMENTS[segment][1]))
        by_rows = operation == Operation.MM and fields["transpose"]
        key = (segment, fields["rf"], by_rows)
        bases_set, rebuild = self.sets.find(key)
        if rebuild and self.params.units:
            bases_set = self.replaced
        self.sets.use((bases_set, rebuild), key, offsets)
        names = ("rf", "imm", "guard", "predicate")
        job = {"kind": _KINDS[operation], "number": number, "segment_number": segment, "bases_set": bases_set,
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
        accumulators = {min(fields["rc"] + step, self.params.regs - 1) for step in range(_steps(self.params, fields))}
        self.sets.write(accumulators)
        factors = set(range(fields["ra"], fields["ra"] + self.params.factor_regs))
        multiply = {"type": fields["type"], "ra": fields["ra"], **shape}
        return [("mm", (accumulators, factors)), ("job", job), ("multiply", multiply)]


def _registers(span):
    return set(range(span.first, span.last + 1))


class _Neighbours:
    """Models all other blocks, pauses at random, and logs the items that leave."""

    def __init__(self, front, rng, stall):
        self.front, self.dut, self.rng, self.stall = front, front.issue, rng, stall
        self.params = front.params
        self.log, self.cycle = [], 0
        self.pending = []  # (kind, written registers, read registers), oldest first
        self.own = None  # the mm or load that was added last
        self.unread = 0  # cycles until the loading side has read all registers
        # Operations that have not started, oldest first, and targets of those in flight, with the cycles that are left.
        # Those of the turn of a job that is being issued start only if they use none of its registers.
        self.waiting, self.flying = [], []

    def _clear(self, ctx):
        access = self.dut.access
        accessed = _registers(ctx.get(access.registers)) if ctx.get(access.valid) else set()
        results = {target for target, to_predicate, _ in self.flying if not to_predicate}
        if self.params.units:
            job = ctx.get(self.dut.job_reads)
            if job.guard and any(to and target % 8 == job.predicate for target, to, _ in self.flying):
                return not ctx.get(access.valid)
            if ctx.get(access.results_only):
                return not accessed & results
        if accessed & results:
            return False
        reads, writes = (set(), accessed) if ctx.get(access.writes) else (accessed, set())
        return not any((reads | writes) & written or writes & read for _, written, read in self.pending)

    async def run(self, ctx):
        dut, rng = self.dut, self.rng
        streams = {"job": dut.jobs, "multiply": dut.multiplies, "wait": dut.waits, "fault": dut.faults}
        streams |= {} if self.params.units else {"lane": dut.lane_operations}
        while True:
            operations = [self.front.router.operations] if self.params.units else []
            paces = [(port.ready, rng.random() >= self.stall) for port in (*streams.values(), *operations)]
            limits = {"mm": self.params.mm_in_flight, "load": LOADS}
            for port, (kind, limit) in zip((dut.mm_registers, dut.load_registers), limits.items(), strict=True):
                paces.append((port.ready, sum(pending[0] == kind for pending in self.pending) < limit))
            set_together(ctx, *paces)
            set_together(ctx, (dut.access.clear, self._clear(ctx)), (dut.loading_idle, not self.unread))
            number = ctx.get(dut.segment.number)
            self.turn = ctx.get(dut.turn) if self.params.units else 0
            self._log(ctx, streams)
            if self.params.units:
                # Sampled, because a stop in the same cycle takes an operation back.
                port = self.front.router.operations
                *_, valid, ready, item = await ctx.tick().sample(port.valid, port.ready, port.payload)
                if valid and ready:
                    self.log.append((self.cycle, "operation", item))
                    self.waiting.append(item)
                self._compute(ctx)
            else:
                await ctx.tick()
            self.cycle += 1
            self.unread = max(0, self.unread - 1)
            if self.pending and (not self.stall or rng.random() < 0.2):
                self.pending.pop(0)
            known = _SEGMENTS[number]
            entry = {"good": 0} if known is None else {
                "good": 1, "element_log2": known[0] & 3, "rank": known[1] - 1, "base": number}  # fmt: skip
            ctx.set(dut.segment.entry, entry)

    def _compute(self, ctx):
        """Starts an operation, or not; its result is written some cycles later."""
        dut, starts = self.dut, self.waiting and (not self.stall or self.rng.random() < 0.4)
        starts = starts and not self._disturbs(ctx, self.waiting[0])
        self.flying = [(target, to, left - 1) for target, to, left in self.flying if left > 1]
        written = None
        if starts:
            item = self.waiting.pop(0)
            target, to_predicate = item.target, item.to_predicate
            self.flying.append((target, to_predicate, _LATENCY))
            written = None if to_predicate else target
        set_together(
            ctx, (dut.written, written is not None), (dut.written_register, written or 0),
            (dut.arithmetic_pending, any(item.turn != ctx.get(dut.turn) for item in self.waiting)),
            (dut.arithmetic_quiet, not (self.waiting or self.flying)),
        )  # fmt: skip

    def _disturbs(self, ctx, operation):
        """Whether an operation must wait for a job that is being issued."""
        dut = self.dut
        if not ctx.get(dut.issuing) or operation.turn != ctx.get(dut.turn):
            return False
        job = ctx.get(dut.job_reads)
        if operation.to_predicate:
            writes = job.guard and job.predicate == operation.target % 8
        else:
            writes = operation.target in _registers(job.offsets) | _registers(job.moved)
            if ctx.get(dut.is_mm):
                writes |= operation.target in _registers(ctx.get(dut.mm_registers.payload.factors))
        used = {operation[name] for n, name in enumerate("abc") if operation.reads >> n & 1}
        return writes or (not job.stores and used & _registers(job.moved))

    def _log(self, ctx, streams):
        dut = self.dut
        mm, load = dut.mm_registers, dut.load_registers
        if ctx.get(mm.valid) and ctx.get(mm.ready):
            accumulators, factors = map(_registers, (ctx.get(mm.payload.accumulators), ctx.get(mm.payload.factors)))
            self._add("mm", accumulators, factors, (accumulators, factors))
        if ctx.get(load.valid) and ctx.get(load.ready):
            written = _registers(ctx.get(load.payload))
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
        if self.params.units:
            assert not [item for item in self.waiting if item.turn != self.turn]
            assert not job.guard or not any(to and target % 8 == job.predicate for target, to, _ in self.flying)
        own = self.own if job.kind != JobKind.STORE else None
        moved = set(range(job.register, job.register + job.count))
        self._check_free(set(range(job.rf, job.rf + job.segment.rank + 1)), writes=False, own=own)
        if job.kind == JobKind.MULTIPLY:
            moved = own[1] | own[2]
        used = moved | set(range(job.rf, job.rf + job.segment.rank + 1))
        assert not used & {target for target, to_predicate, _ in self.flying if not to_predicate}
        if job.kind != JobKind.MULTIPLY:
            self._check_free(moved, writes=job.kind == JobKind.LOAD, own=own)


def run(words, *, params=SIZES["alone"], mode="none", seed=0, also=(), cores=1):
    """Everything that leaves, as (cycle, name, contents)."""
    front, rng = elaborated(Front, params, cores), random.Random(f"issue {mode} {seed}")
    neighbours = _Neighbours(front, rng, STALL_MODES[mode]["stall"])
    done = []

    async def source(ctx):
        await send(ctx, front.decoder.i, words, idle=STALL_MODES[mode]["idle"], seed=seed)
        while not (ctx.get(front.decoder.idle) and ctx.get(front.issue.idle)):
            await ctx.tick()
        done.append(True)

    issue = front.issue
    outputs = [issue.jobs, issue.multiplies, issue.waits, issue.faults, issue.mm_registers, issue.load_registers]
    if not params.units:
        outputs.append(issue.lane_operations)
    elif cores == 1:  # a core that is stopped takes an operation back that it has offered
        outputs.append(front.router.operations)
    background = [neighbours.run, *map(watch_stream, outputs), *(script(front) for script in also)]
    simulate(front, source, background=background, deadline=60 * len(words) + 200)
    return neighbours.log


def compare(log, words, params=SIZES["alone"], **stop):
    """Checks a log against the reference. Of an mm, job and multiply may leave in any order, both after the entry.

    Operations pass jobs, so they are compared by themselves.
    """
    reference, place = _Reference(params, **stop), 0
    operations = iter([entry for entry in log if entry[1] == "operation"])
    others = [entry for entry in log if entry[1] != "operation"]
    for number, word in enumerate(words):
        jobs = [item for _, name, item in others[place : place + 3] if name == "job"]
        reference.replaced = jobs[0].bases_set if jobs else None
        events = reference.events(word, number)
        if events[0][0] == "operation":
            entries = [next(operations)]
        else:
            entries = others[place : place + len(events)]
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
    assert place == len(others) and next(operations, None) is None
    return reference
