"""Kernels: instructions come from the stream, or from instruction memory while a kernel runs."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import INSTRUCTIONS, Operation, Target

from ...lib.layouts import packed_layout
from ..layouts import INSTRUCTION_BITS

__all__ = ["FetchedLayout", "Kernels", "LoopCountLayout"]

#: Entries of the lookup memory in a word.
_ENTRIES = 4
_LOOPS = 2


class FetchedLayout(data.StructLayout):
    """An instruction, and what its place says of it."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(INSTRUCTION_BITS),
                "misplaced": 1,  # it has the error CONTROL, unless it has one of a lower order
                "inside": 1,  # it is an instruction of a kernel, or the CALL that begins one
                "index": unsigned(16),  # in instruction memory; of a CALL in the stream, where the kernel begins
            }
        )


class LoopCountLayout(data.StructLayout):
    """Rounds of a loop, read from a uniform register when its LOOP is executed."""

    def __init__(self):
        super().__init__({"valid": 1, "count": unsigned(32)})  # count: 0 if the LOOP had an error


class Kernels(wiring.Component):
    """Holds the instruction memory; loads it, and the lookup memory, from the stream; executes calls and loops.

    CALL, RETURN, LOOP, END and LOAD are handed on like all instructions, to be numbered and checked. A wrong one, but a
    LOAD, ends the kernel. A LOOP with a uniform register waits until the instructions before it have been issued.

    Throughput: one instruction a cycle, in and out of loops. Latency: 0 in the stream; a kernel's first instruction
    follows one cycle after its CALL.

    Attributes
    ----------
    place : Signal
        Index of the instruction that is next in a kernel; for proofs.
    level, firsts, rounds, counts : Signal, list of Signal, list of Signal, Signal
        Loops that are open; of each its first instruction, and rounds that are left; whether a count is on its way; for
        proofs.
    """

    def __init__(self, params):
        self._params = params
        self.place = Signal(params.kernel_width + 1)
        self.level, self.counts = Signal(range(_LOOPS + 1)), Signal()
        self.firsts = [Signal(params.kernel_width + 1, name=f"first{n}") for n in range(_LOOPS)]
        self.rounds = [Signal(32, name=f"rounds{n}") for n in range(_LOOPS)]
        self._memory = Memory(shape=unsigned(INSTRUCTION_BITS), depth=params.kernel_words, init=[])
        looks_up = "lookup" in params.units
        super().__init__(
            {
                "i": In(stream.Signature(INSTRUCTION_BITS)),
                "o": Out(stream.Signature(FetchedLayout())),
                "loop_count": In(LoopCountLayout()),  # valid: strobe
                "stopped": In(1),
                "drained": In(1),  # no instruction that was handed on still looks up an entry
                "idle": Out(1),  # no kernel runs
                "ended": Out(1),  # strobe: a kernel ends
                "loaded": Out(1),  # strobe: a word that follows a LOAD is taken
                **(
                    {"entry_write": Out(1), "entry": Out(range(params.lookup_words)), "entry_data": Out(32)}
                    if looks_up
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, o, fetched = self._params, self.o, self.o.payload
        m.submodules.memory = memory = self._memory
        read, write = memory.read_port(), memory.write_port()
        place, following = self.place, Signal(params.kernel_width + 1)
        running, past = Signal(), Signal()
        past_word = Const(INSTRUCTIONS[Operation.RETURN].pack(opcode=Operation.RETURN), INSTRUCTION_BITS)
        m.d.comb += [
            past.eq(place[-1]),
            read.addr.eq(following),
            fetched.word.eq(Mux(running, Mux(past, past_word, read.data), self.i.payload)),
            following.eq(place),
        ]
        m.d.sync += place.eq(following)
        word = fetched.word
        is_a = {
            operation: Signal(name=f"is_{operation.name.lower()}")
            for operation in (Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END, Operation.LOAD)
        }
        call, loop, load = (
            data.View(packed_layout(INSTRUCTIONS[operation]), word)
            for operation in (Operation.CALL, Operation.LOOP, Operation.LOAD)
        )
        # Rules of the word alone. The decoder, too, refuses a word that breaks them.
        legal = Signal(init=1)
        with m.Switch(word[:8]):
            for operation, is_operation in is_a.items():
                with m.Case(operation):
                    rules = ~(word & INSTRUCTIONS[operation].reserved_mask).any()
                    if operation == Operation.LOOP:
                        rules &= self._wellformed(loop)
                    if operation == Operation.LOAD:
                        rules &= load.n != 0
                    m.d.comb += [is_operation.eq(1), legal.eq(rules)]
        controls = Cat(is_a.values()).any()

        level, firsts, rounds = self.level, self.firsts, self.rounds
        last = Signal()  # the innermost loop is in its last round
        m.d.comb += last.eq(Mux(level == _LOOPS, rounds[1], rounds[0]) == 1)
        loads_code = load.target == Target.CODE
        too_far = Mux(
            loads_code,
            self._beyond(load.imm, load.n, params.kernel_words),
            self._beyond(load.imm[2:], load.n, params.lookup_words // _ENTRIES) | load.imm[:2].any()
            if "lookup" in params.units
            else 1,
        )
        m.d.comb += [
            fetched.misplaced.eq(
                Mux(
                    running,
                    past
                    | is_a[Operation.CALL]
                    | is_a[Operation.LOAD]
                    | (is_a[Operation.LOOP] & (level == _LOOPS))
                    | (is_a[Operation.END] & (level == 0)),
                    is_a[Operation.RETURN]
                    | is_a[Operation.LOOP]
                    | is_a[Operation.END]
                    | (is_a[Operation.CALL] & (call.imm >= params.kernel_words))
                    | (is_a[Operation.LOAD] & too_far),
                )
            ),
            fetched.index.eq(Mux(running, place, Mux(is_a[Operation.CALL], call.imm[:16], 0))),
        ]
        leaves, wrong = Signal(), Signal()
        begins = Signal()  # the instruction is a CALL that is executed
        m.d.comb += [
            begins.eq(~running & legal & is_a[Operation.CALL] & ~fetched.misplaced & ~self.stopped),
            fetched.inside.eq(running | begins),
        ]
        m.d.comb += [
            leaves.eq(o.valid & o.ready),
            wrong.eq(controls & ~is_a[Operation.LOAD] & (~legal | fetched.misplaced)),
        ]

        # What LOAD brings:
        remaining, target, good, entry = Signal(16), Signal(1), Signal(), Signal(range(_ENTRIES))
        position = Signal(max(params.kernel_width, (params.lookup_words - 1).bit_length()))
        m.d.comb += [write.addr.eq(position), write.data.eq(self.i.payload)]
        with m.FSM():
            with m.State("STREAM"):
                m.d.comb += [o.valid.eq(self.i.valid), self.i.ready.eq(o.ready), self.idle.eq(1)]
                m.d.sync += [
                    remaining.eq(load.n),
                    target.eq(load.target),
                    position.eq(load.imm),
                    good.eq(~fetched.misplaced & ~self.stopped),
                    level.eq(0),
                ]
                with m.If(leaves & legal):
                    with m.If(begins):
                        m.d.comb += following.eq(call.imm)
                        m.next = "RUN"
                    with m.If(is_a[Operation.LOAD]):
                        m.next = "CODE"
                        with m.If(load.target == Target.LOOKUP):
                            m.next = "ENTRIES"
            with m.State("CODE"):
                m.d.comb += [self.i.ready.eq(1), self.idle.eq(1), write.en.eq(self.i.valid & good)]
                m.d.comb += self.loaded.eq(self.i.valid)
                with m.If(self.i.valid):
                    m.d.sync += [position.eq(position + 1), remaining.eq(remaining - 1)]
                    with m.If(remaining == 1):
                        m.next = "STREAM"
            with m.State("ENTRIES"):
                writes = self.i.valid & self.drained
                m.d.comb += [self.idle.eq(1), self.i.ready.eq(self.drained & (entry == _ENTRIES - 1))]
                if "lookup" in params.units:
                    m.d.comb += [
                        self.entry_write.eq(writes & good),
                        self.entry.eq(position),
                        self.entry_data.eq(self.i.payload.word_select(entry, 32)),
                    ]
                with m.If(writes):
                    m.d.sync += [position.eq(position + 1), entry.eq(entry + 1)]
                    with m.If(entry == _ENTRIES - 1):
                        m.d.comb += self.loaded.eq(1)
                        m.d.sync += remaining.eq(remaining - 1)
                        with m.If(remaining == 1):
                            m.next = "STREAM"
            with m.State("RUN"):
                m.d.comb += [running.eq(1), o.valid.eq(~self.stopped)]
                with m.If(self.stopped):
                    m.d.comb += self.ended.eq(1)
                    m.next = "STREAM"
                with m.Elif(leaves):
                    m.d.comb += following.eq(place + 1)
                    with m.If(is_a[Operation.RETURN] | wrong):
                        m.d.comb += self.ended.eq(1)
                        m.next = "STREAM"
                    with m.Elif(is_a[Operation.LOOP]):
                        m.d.sync += level.eq(level + 1)
                        for number, (first, count) in enumerate(zip(firsts, rounds, strict=True)):
                            with m.If(level == number):
                                m.d.sync += [first.eq(place + 1), count.eq(loop.imm)]
                        with m.If(loop.b == Operand.UNIFORM):
                            m.next = "COUNT"
                    with m.Elif(is_a[Operation.END]):
                        for number, (first, count) in enumerate(zip(firsts, rounds, strict=True)):
                            with m.If(level == number + 1):
                                m.d.sync += count.eq(count - 1)
                                with m.If(~last):
                                    m.d.comb += following.eq(first)
                        with m.If(last):
                            m.d.sync += level.eq(level - 1)
            with m.State("COUNT"):
                m.d.comb += self.counts.eq(1)
                with m.If(self.loop_count.valid):
                    m.next = "RUN"
                    for number, count in enumerate(rounds):
                        with m.If(level == number + 1):
                            m.d.sync += count.eq(self.loop_count.count)
                    with m.If(self.loop_count.count == 0):
                        m.d.comb += self.ended.eq(1)
                        m.next = "STREAM"
        return m

    def _wellformed(self, loop):
        """Whether the count of a LOOP is an immediate that is not 0, or a uniform register that exists."""
        given = (loop.b == Operand.IMMEDIATE) & (loop.rb == 0) & (loop.imm != 0)
        uniform = (loop.b == Operand.UNIFORM) & (loop.rb < self._params.uniform_regs) & (loop.imm == 0)
        return given | uniform

    @staticmethod
    def _beyond(first, count, size):
        """Whether ``count`` words from ``first`` on end beyond a memory of ``size`` words, a power of two."""
        bits = size.bit_length()
        return (first >= size) | (count > size) | ((first[:bits] + count[:bits]) > size)
