"""The dispatcher of the command processor: carries out words in order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BarrierOp
from tilewright.spec.conv import JOB
from tilewright.spec.core import PROGRAM_WORDS, WRITABLE, Engine, Kind, ProgramError

from ...bus.axi4_lite import AccessSignature
from ...lib.layouts import command_layout
from ...pe.layouts import INSTRUCTION_BITS
from ...smem.layouts import BarrierRequestLayout
from .checks import word_view
from .kernel import KernelCaller
from .layouts import INSTRUCTIONS, LINE_LOG2, DecodedLayout, RunLayout
from .loops import LoopStack

__all__ = ["SETTLED", "Dispatcher"]


#: Cycles that engines must be idle for: the most that an error takes from an engine to the cause.
SETTLED = 8
_COMMAND_BITS = PROGRAM_WORDS[Kind.END]["kind"].lsb
_OFFSET_BITS = max(max(registers) for registers in WRITABLE.values()).bit_length()


class Dispatcher(wiring.Component):
    """Sends each word to its engine, and waits where a word says so.

    A word takes two cycles, and the cycles that its engine adds. Between words, and while one waits, a cause from
    outside stops the program; an item that is offered to an engine still passes.

    Parameters
    ----------
    params : CoreParams
    regions : dict of str to Region
        Where registers of engines lie.
    """

    def __init__(self, params, regions):
        self._params = params
        self._bases = {engine: regions[engine.name.lower()].base for engine in WRITABLE
                       if engine.name.lower() in regions}  # fmt: skip
        super().__init__(
            {
                # Strobe: run a program, unless one runs.
                "start": In(1),
                # Address of the program. It and ``count`` hold while a program runs.
                "address": In(64),
                # Words of the program.
                "count": In(32),
                # Words from ``target`` of the last ``jump`` on.
                "words": In(stream.Signature(DecodedLayout())),
                # Strobe: go on with word ``target``; drop what has been fetched.
                "jump": Out(1),
                "target": Out(32),
                # The program is over: drop all, also instructions.
                "halt": Out(1),
                # Nothing is in flight that ``halt`` has to wait for.
                "drained": In(1),
                "commands": Out(stream.Signature(command_layout())),
                # Accepted when all instructions have been taken. Withdrawn if there is a cause to stop.
                "runs": Out(stream.Signature(RunLayout(params.tmau.addr_width))),
                # Instructions that call a kernel, to a register.
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                # The engine has accepted all of them.
                "called": In(1),
                # With ``jump``: the bus answered with an error.
                "run_failed": In(1),
                # Accepted when the operation has ended, or is given up.
                "calls": Out(stream.Signature(BarrierRequestLayout(params.smem))),
                # With ``jump``: the barrier refused.
                "call_failed": In(1),
                # With ``jump``: it is done.
                "call_passed": In(1),
                "accesses": Out(AccessSignature()),
                # A range to be checked: see ``RangeCheck``.
                "range_line": Out(64 - LINE_LOG2),
                "range_lines": Out(32),
                "range_go": Out(1),
                "range_done": In(1),
                "range_code": In(8),
                # Registers of the processing engine must not be written.
                "put_busy": In(1),
                # Engines that have ended all their work, in the order of spec.core.Engine.
                "idle": In(len(Engine) - 1),
                # There is a cause to stop.
                "stops": In(1),
                # Strobe: the current word is a cause to stop.
                "failed": Out(1),
                # ProgramError of this cause.
                "code": Out(8),
                # Tag of the current word.
                "tag": Out(16),
                # Index of the current word.
                "index": Out(32),
                # Strobe: a program begins.
                "begin": Out(1),
                # A program runs.
                "busy": Out(1),
                # A program runs, and has not come to its end.
                "carries_out": Out(1),
                # Strobe: a word is carried out, a job's three words as one.
                "word_done": Out(1),
                # With ``word_done``: its kind.
                "kind": Out(4),
                # Strobe: the program is over.
                "ended": Out(1),
                # With ``ended``: its END says so.
                "interrupt": Out(1),
                # It waits for a barrier or for engines, or at the end.
                "waits": Out(1),
                # An engine does not take what is offered.
                "stall_engine": Out(1),
                # The next word has not come.
                "stall_fetch": Out(1),
            }
            | ({"jobs": Out(stream.Signature(JOB.bits))} if params.conv else {})
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.loops = self._loops = LoopStack()
        m.submodules.kernel = self._kernel = KernelCaller()
        self._back_to = Signal(32)  # where the body of a loop begins
        self._below = Signal()  # that is before the program
        self._settled = Signal(range(SETTLED + 1))  # cycles for which they have been idle
        self._connect(m)
        with m.FSM() as fsm:
            self._begin(m)
            self._choose(m)
            self._hand_over(m)
            self._wait(m)
            self._end(m)
        self._settle(m)
        self._watch(m, fsm)
        return m

    def _connect(self, m):
        """What each taker sees of the current word."""
        word, loops = self.words.payload.word, self._loops
        run, call, write = (word_view(kind, word) for kind in (Kind.PE, Kind.BARRIER, Kind.REGISTER))
        access = self.accesses.requests.payload
        m.d.comb += [
            self.tag.eq(Mux(self.words.valid, self.words.payload.tag, 0)),
            self.kind.eq(self.words.payload.kind),
            self.commands.payload.eq(word[:_COMMAND_BITS]),
            self.runs.payload.line.eq(run.address[LINE_LOG2:]),
            self.runs.payload.count.eq(run.count),
            self.calls.payload.op.eq(call.operation),
            self.calls.payload.address.eq(call.barrier),
            self.calls.payload.value.eq(call.value),
            access.write.eq(1),
            access.strobe.eq(-1),
            access.data.eq(write.value),
            loops.index.eq(self.index),
            loops.count.eq(word_view(Kind.LOOP, word).count),
            loops.clear.eq(self.begin),
        ]
        with m.Switch(write.engine):
            for engine, base in self._bases.items():
                with m.Case(engine):
                    m.d.comb += access.address.eq(base | write.offset[:_OFFSET_BITS])
        m.d.sync += Cat(self._back_to, self._below).eq(self.index - word_view(Kind.LOOP, word).back)

    def _done(self, m, step=1):
        """The word at hand is carried out; the next one is ``step`` further on."""
        m.d.comb += [self.words.ready.eq(1), self.word_done.eq(1)]
        m.d.sync += self.index.eq(self.index + step)
        m.next = "WORD"

    def _fail(self, m, code):
        m.d.comb += [self.failed.eq(1), self.code.eq(code)]
        m.next = "DRAIN"

    def _begin(self, m):
        with m.State("IDLE"), m.If(self.start):
            m.d.comb += self.begin.eq(1)
            m.d.sync += self.index.eq(0)
            m.next = "BEGIN"
        with m.State("BEGIN"):
            m.d.comb += self.range_go.eq(1)
            m.next = "CHECK"
        with m.State("CHECK"), m.If(self.range_done):
            with m.If(self.address[:LINE_LOG2].any()):
                self._fail(m, ProgramError.ADDRESS)
            with m.Elif(self.range_code != ProgramError.NONE):
                self._fail(m, self.range_code)
            with m.Else():
                m.d.comb += self.jump.eq(1)
                m.next = "WORD"

    def _choose(self, m):
        """What is to be done with the next word."""
        words = self.words
        states = {
            Kind.TMAU: "COMMAND", Kind.PE: "RANGE", Kind.BARRIER: "CALL", Kind.WAIT_ALL: "SETTLE",
            Kind.REGISTER: "REGISTER", Kind.LOOP: "LOOP", Kind.END: "SETTLE", Kind.KERNEL: "KERNEL",
        }  # fmt: skip
        with m.State("WORD"):
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(words.valid & (words.payload.code != ProgramError.NONE)):
                self._fail(m, words.payload.code)
            with m.Elif(words.valid), m.Switch(words.payload.kind):
                for kind, state in states.items():
                    with m.Case(kind):
                        m.next = state
                if self._params.conv:
                    with m.Case(Kind.CONV):
                        m.d.comb += words.ready.eq(1)
                        m.d.sync += self.index.eq(self.index + 1)
                        m.next = "LOW"
        with m.State("LOOP"):
            with m.If(self._below | self._loops.full):
                self._fail(m, ProgramError.LOOP)
            with m.Else():
                m.d.comb += self._loops.ends.eq(1)
                self._done(m)
                with m.If(self._loops.again):
                    m.d.comb += self.jump.eq(1)
                    m.d.sync += self.index.eq(self._back_to)

    def _hand_over(self, m):
        """To the engines."""
        write = word_view(Kind.REGISTER, self.words.payload.word)
        with m.State("COMMAND"):
            m.d.comb += self.commands.valid.eq(1)
            with m.If(self.commands.ready):
                self._done(m)
        if self._params.conv:
            self._hand_over_job(m)
        with m.State("RANGE"):
            m.d.comb += self.range_go.eq(1)
            m.next = "RANGED"
        with m.State("RANGED"), m.If(self.range_done):
            m.next = "RUN"
            with m.If(self.range_code != ProgramError.NONE):
                self._fail(m, self.range_code)
        with m.State("RUN"):
            m.d.comb += self.runs.valid.eq(1)
            with m.If(self.runs.ready & self.run_failed):
                self._fail(m, ProgramError.BUS)
            with m.Elif(self.runs.ready):
                self._done(m)
            with m.Elif(self.stops):
                m.next = "DRAIN"
        self._call_kernel(m)
        with m.State("REGISTER"):
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(~self.put_busy | (write.engine != Engine.PE)):
                m.next = "ACCESS"
        with m.State("ACCESS"):
            m.d.comb += self.accesses.requests.valid.eq(1)
            with m.If(self.accesses.requests.ready):
                m.next = "ANSWER"
        with m.State("ANSWER"):
            m.d.comb += self.accesses.answers.ready.eq(1)
            with m.If(self.accesses.answers.valid):
                self._done(m)
                with m.If(self.accesses.answers.payload.error):
                    m.d.comb += self.word_done.eq(0)
                    self._fail(m, ProgramError.REGISTER)

    def _call_kernel(self, m):
        kernel = self._kernel
        connect(m, kernel=kernel.o, dispatcher=flipped(self.instructions))
        m.d.comb += kernel.word.eq(self.words.payload.word)
        with m.State("KERNEL"):
            m.d.comb += kernel.go.eq(~self.stops)
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(kernel.done):
                m.next = "CALLED"
        with m.State("CALLED"):
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(self.called):
                self._done(m)

    def _hand_over_job(self, m):
        """The low half waits in a register for the high one."""
        words, low = self.words, Signal(JOB.bits // 2)
        m.d.comb += self.jobs.payload.eq(Cat(low, words.payload.word))
        with m.State("LOW"):
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(words.valid & (words.payload.code != ProgramError.NONE)):
                self._fail(m, words.payload.code)
            with m.Elif(words.valid):
                m.d.comb += words.ready.eq(1)
                m.d.sync += [low.eq(words.payload.word), self.index.eq(self.index + 1)]
                m.next = "HIGH"
        with m.State("HIGH"):
            with m.If(words.valid & (words.payload.code != ProgramError.NONE)):
                self._fail(m, words.payload.code)
            with m.Elif(words.valid):
                m.d.comb += self.jobs.valid.eq(1)
                m.d.comb += self.kind.eq(Kind.CONV)
                with m.If(self.jobs.ready):
                    self._done(m)
            with m.Elif(self.stops):
                m.next = "DRAIN"

    def _wait(self, m):
        """For a barrier, and for engines to be idle."""
        with m.State("CALL"):
            m.d.comb += self.calls.valid.eq(1)
            with m.If(self.calls.ready):
                with m.If(self.call_passed):
                    self._done(m)
                with m.Elif(self.call_failed):
                    self._fail(m, ProgramError.BARRIER)
                with m.Else():
                    m.next = "DRAIN"
        with m.State("SETTLE"):
            with m.If(self.stops):
                m.next = "DRAIN"
            with m.Elif(self._settled == SETTLED):
                self._done(m)
                with m.If(self.words.payload.kind == Kind.END):
                    m.d.sync += [
                        self.index.eq(self.index),
                        self.interrupt.eq(word_view(Kind.END, self.words.payload.word).interrupt),
                    ]
                    m.next = "DRAIN"

    def _end(self, m):
        with m.State("DRAIN"):
            m.d.comb += self.halt.eq(1)
            with m.If(self.drained):
                m.d.comb += self.ended.eq(1)
                m.next = "IDLE"

    def _settle(self, m):
        """How long engines have been idle: those that the word names, or all."""
        wait = word_view(Kind.WAIT_ALL, self.words.payload.word)
        wanted = Signal(len(self.idle))
        with m.Switch(self.words.payload.kind):
            with m.Case(Kind.WAIT_ALL):
                m.d.comb += wanted.eq(wait.engines | (wait.engines == 0).replicate(len(wanted)))
            with m.Default():
                m.d.comb += wanted.eq(-1)
        counts = self.words.valid & ((wanted & ~self.idle) == 0) & ~self.words.ready
        m.d.sync += self._settled.eq(Mux(counts, self._settled + (self._settled != SETTLED), 0))

        with m.If(self.begin):
            m.d.sync += self.interrupt.eq(0)

    def _watch(self, m, fsm):
        """Which range is checked, and what is counted."""
        run = self.runs.payload
        begins = fsm.ongoing("BEGIN") | fsm.ongoing("CHECK")
        offers = (self.commands, self.runs, self.instructions, *([self.jobs] if self._params.conv else []))
        fetches = fsm.ongoing("WORD")
        if self._params.conv:
            fetches |= fsm.ongoing("LOW") | fsm.ongoing("HIGH")
        waits_for_barrier = fsm.ongoing("CALL") & (self.calls.payload.op == BarrierOp.TRY_WAIT)
        m.d.comb += [
            self.target.eq(Mux(begins, 0, self._back_to)),
            self.range_line.eq(
                Mux(begins, self.address[LINE_LOG2:], word_view(Kind.PE, self.words.payload.word).address[LINE_LOG2:])
            ),
            self.range_lines.eq(Mux(begins, self.count, (run.count + INSTRUCTIONS - 1) // INSTRUCTIONS)),
            self.busy.eq(~fsm.ongoing("IDLE")),
            self.carries_out.eq(~fsm.ongoing("IDLE") & ~fsm.ongoing("DRAIN")),
            self.waits.eq(waits_for_barrier | fsm.ongoing("SETTLE")),
            self.stall_engine.eq(Cat(port.valid & ~port.ready for port in offers).any()),
            self.stall_fetch.eq(fetches & ~self.words.valid),
        ]
