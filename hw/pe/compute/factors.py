"""Factors: reads the rows of A for the next mm while the current one multiplies."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FactorFetcher"]


class FactorFetcher(wiring.Component):
    """Two sets of factor registers for all threads: one in use, one for the next mm.

    The next mm's F registers are read, one a cycle, as soon as the scoreboard lets them and the set of before has been
    claimed. ``held`` says, from the cycle after the first read on, that a first step may claim them; they are in use
    three cycles after the claim, when they are surely there. So mm of two steps follow one another without a bubble.

    Members
    -------
    registers : In(stream of unsigned(params.reg_width))
        First factor register of each mm, in order.
    ready : In(1)
        From the scoreboard: the next mm may read.
    taken : Out(1)
        Strobe to the scoreboard, with the first read.
    reads : Out(stream of unsigned(params.reg_width), always ready)
    row : In(array of params.threads 32)
        One cycle after ``reads``.
    held : Out(1)
    claim : In(1)
        Strobe, only while ``held``: the first step of the mm sets off.
    use : In(1)
        Strobe, two cycles after ``claim``: from the next cycle on, ``o`` holds the factors of this mm.
    o : Out(array of params.threads params.unit_bits)
        Registered; a factor's first register in the low bits.
    """

    def __init__(self, params):
        self._params = params
        register = unsigned(params.reg_width)
        super().__init__(
            {
                "registers": In(stream.Signature(register)),
                "ready": In(1),
                "taken": Out(1),
                "reads": Out(stream.Signature(register, always_ready=True)),
                "row": In(data.ArrayLayout(32, params.threads)),
                "held": Out(1),
                "claim": In(1),
                "use": In(1),
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, threads = self._params.factor_regs, self._params.threads
        begins = Signal()
        m.d.comb += [
            begins.eq(self.registers.valid & self.ready & ~self.held),
            self.registers.ready.eq(self.ready & ~self.held),
            self.taken.eq(begins),
            self.reads.valid.eq(begins),
            self.reads.p.eq(self.registers.p),
        ]
        with m.If(begins):
            m.d.sync += self.held.eq(1)
        with m.Elif(self.claim):
            m.d.sync += self.held.eq(0)

        arrives = Signal(count)  # the row of this register is on ``row``
        m.d.sync += arrives.eq((arrives << 1) | begins)
        if count == 2:
            second = Signal(self._params.reg_width)
            m.d.sync += second.eq(self.registers.p + 1)
            with m.If(arrives[0]):
                m.d.comb += [self.reads.valid.eq(1), self.reads.p.eq(second)]

        following = Signal(data.ArrayLayout(data.ArrayLayout(32, count), threads))
        for index in range(count):
            with m.If(arrives[index]):
                m.d.sync += [following[thread][index].eq(self.row[thread]) for thread in range(threads)]
        with m.If(self.use):
            m.d.sync += self.o.eq(following)
        return m
