"""A kernel's instructions follow each other as docs/pe.md says: each loop, also a nested one, is executed n times."""

import pytest
from amaranth.hdl import Array, Assert, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.pe.issue.decode import instruction_view
from tilewright.hw.pe.issue.kernels import Kernels
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import INSTRUCTIONS, Operation
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"].replace(kernel_words=16, lookup_words=256)
LOOPS = 2


class KernelsSpec(Spec):
    """Counts rounds of the loops of any kernel, as its instructions leave; the core may be stopped at any time."""

    given, made = "i", ""

    def __init__(self):
        self.dut = Kernels(PARAMS)

    def specify(self, m, dut):
        item = dut.o.payload
        leaves, word, index = dut.o.valid & dut.o.ready, item.word, item.index
        loop = instruction_view(Operation.LOOP, word)

        def is_a(operation, rules=1):
            return (word[:8] == operation) & ((word & INSTRUCTIONS[operation].reserved_mask) == 0) & rules

        given = (loop.b == Operand.IMMEDIATE) & (loop.rb == 0) & (loop.imm != 0)
        by_register = (loop.b == Operand.UNIFORM) & (loop.rb < PARAMS.uniform_regs) & (loop.imm == 0)
        right = item.inside & ~item.misplaced
        begins_loop, ends_round = is_a(Operation.LOOP, given | by_register), is_a(Operation.END)
        # The kernel that runs: the index that is next, the loops that are open, and whether a count is on its way.
        active, following, level, asks = Signal(), Signal(16), Signal(range(LOOPS + 1)), Signal()
        first = Array(Signal(16, name=f"begin{n}") for n in range(LOOPS))
        wanted = Array(Signal(32, name=f"wanted{n}") for n in range(LOOPS))
        done = Array(Signal(32, name=f"done{n}") for n in range(LOOPS))
        inner = Mux(level == LOOPS, 1, 0)  # the innermost loop
        is_last = done[inner] + 1 == wanted[inner]
        with m.If(leaves & item.inside):
            m.d.sync += following.eq(index + 1)
        with m.If(leaves & right):
            with m.If(~active):
                m.d.sync += [active.eq(1), following.eq(instruction_view(Operation.CALL, word).imm), level.eq(0)]
            with m.Elif(begins_loop):
                m.d.sync += [level.eq(level + 1), asks.eq(by_register)]
                m.d.sync += [first[level[0]].eq(index + 1), wanted[level[0]].eq(loop.imm), done[level[0]].eq(0)]
            with m.Elif(ends_round & is_last):
                m.d.sync += level.eq(level - 1)
            with m.Elif(ends_round):
                m.d.sync += [done[inner].eq(done[inner] + 1), following.eq(first[inner])]
        with m.If(asks & dut.loop_count.valid):
            m.d.sync += [asks.eq(0), wanted[inner].eq(dut.loop_count.count)]
        with m.If(dut.ended):
            m.d.sync += [active.eq(0), asks.eq(0)]
        stopped_before = Signal()
        m.d.sync += stopped_before.eq(active & dut.stopped & ~asks)
        m.d.comb += [
            # What leaves while a kernel runs is the instruction at the index that is next.
            Assert(~(dut.o.valid & active) | (item.inside & (index == following))),
            Assert(~(leaves & item.inside & ~active) | is_a(Operation.CALL)),
            Assert(~(leaves & active & ends_round & ~item.misplaced) | (level != 0)),
            # It ends with a return, an error of control or a stop; nothing else ends it.
            Assert(~(leaves & active & is_a(Operation.RETURN)) | dut.ended),
            Assert(~(leaves & active & right & (begins_loop | ends_round)) | ~dut.ended),
            Assert(~dut.ended | active),
            Assert(~stopped_before | dut.idle),
            Assert(dut.idle | dut.o.valid | asks | dut.stopped),
            # State.
            Assert((active == ~dut.idle) & (asks == dut.counts) & (~asks | active)),
            Assert(~active | ((level == dut.level) & (following == dut.place))),
            Assert((level <= LOOPS) & (~asks | (level != 0))),
            *(
                Assert(
                    ~(active & (level > n))
                    | (
                        (first[n] == dut.firsts[n])
                        & Mux(
                            asks & (level == n + 1),
                            done[n] == 0,
                            (dut.rounds[n] == (wanted[n] - done[n])[:32]) & (done[n] < wanted[n]),
                        )
                    )
                )
                for n in range(LOOPS)
            ),
            Cover(leaves & active & ends_round & is_last & (level == LOOPS) & (done[1] == 1)),
            Cover(asks & dut.loop_count.valid & (dut.loop_count.count == 3)),
        ]


def test_loops_are_executed_as_often_as_they_say():
    prove(KernelsSpec(), name="kernels", depth=3)


@pytest.mark.long
def test_nested_loops_are_reached():
    prove(KernelsSpec(), name="kernels-cover", mode="cover", depth=30)
