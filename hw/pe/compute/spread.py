"""Spread: gives every thread its unit of a step, and says which threads the step's results are for."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.choice import chosen
from ..sharing import SHARINGS, of_sharing, sharing_code
from .layouts import STEP_UNITS, place_of_unit

__all__ = ["Spread", "writers"]


class Spread(wiring.Component):
    """Thread i takes unit i mod (ka·kb).

    Latency: ``LATENCY`` cycles. Throughput: one step a cycle; nothing stalls it.

    Few places of a step are ever for a thread: thread 15 takes what is at 0, 1, 3, 7, 8 or 15. Which of them is found
    in the first cycle, and taken in the second.

    Members
    -------
    ka, kb : In(2)
        As stored.
    units : In(array of STEP_UNITS params.unit_bits)
        Each at its ``place_of_unit``.
    o : Out(array of params.threads params.unit_bits)
        Registered.
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "ka": In(2),
                "kb": In(2),
                "units": In(data.ArrayLayout(params.unit_bits, STEP_UNITS)),
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        code = sharing_code(self.ka, self.kb)
        units = Signal.like(self.units)
        m.d.sync += units.eq(self.units)
        choices = {}  # units of a thread by sharing -> which of them it is now
        for thread in range(self._params.threads):
            taken = tuple(place_of_unit(ka, kb, thread % (ka * kb)) for ka, kb in SHARINGS)
            if taken not in choices:
                choices[taken] = self._choice(m, code, taken, f"choice{thread}")
            m.d.sync += self.o[thread].eq(
                chosen(choices[taken], dict(enumerate(units[unit] for unit in sorted(set(taken)))))
            )
        return m

    @staticmethod
    def _choice(m, code, taken, name):
        """The number of the unit that is taken among those that ever are, for the sharing of the cycle before."""
        numbers = {unit: number for number, unit in enumerate(sorted(set(taken)))}
        choice = Signal(range(len(numbers)), name=name)
        for bit in range(len(choice)):
            has_bit = {sharing for sharing, unit in zip(SHARINGS, taken, strict=True) if numbers[unit] >> bit & 1}
            m.d.sync += choice[bit].eq(of_sharing(code, lambda ka, kb, has_bit=has_bit: (ka, kb) in has_bit))
        return choice


def writers(code, on, threads):
    """Threads that a step writes: the first member of every group for a column that is on, in whole groups.

    Parameters
    ----------
    code : Value
        Of ``sharing_code``.
    on : Value
        Columns that are on, by member qa.
    threads : int

    Returns
    -------
    Value
        One bit for each thread.
    """
    return Cat(
        Cat(_writes(code, thread, threads, member) & on[member] for member in range(4)).any()
        for thread in range(threads)
    )


def _writes(code, thread, threads, member):
    """Whether the thread holds the accumulators of this member of its group."""

    def writes(ka, kb):
        group, place = divmod(thread, ka * kb)
        return group < threads // (ka * kb) and place == member * kb

    return of_sharing(code, writes)
