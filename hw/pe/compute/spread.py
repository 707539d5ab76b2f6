"""Spread: gives every thread its unit of a step, and says which threads the step's results are for."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..sharing import SHARINGS, of_sharing, sharing_code
from .layouts import STEP_UNITS

__all__ = ["Spread", "writers"]


class Spread(wiring.Component):
    """Thread i takes unit i mod (ka·kb).

    Latency: ``LATENCY`` cycles. Throughput: one step a cycle; nothing stalls it.

    Not every thread has a multiplexer of its own. If ka·kb is a power of two, threads i and i + 16 take the same unit;
    otherwise it is a multiple of 3, and threads i and i + 36 do. So the first stage makes what threads 0 to 15 take in
    the one case, and 0 to 35 in the other; the second stage is a choice of two for every thread.

    Members
    -------
    ka, kb : In(2)
        As stored.
    units : In(array of STEP_UNITS params.unit_bits)
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
        params = self._params
        counts = {ka * kb for ka, kb in SHARINGS}
        code = sharing_code(self.ka, self.kb)
        is_count = {count: _has_count(code, count) for count in counts}

        def slots(family, period):
            """What the first ``period`` threads take, for the numbers of units in ``family``."""
            taken = []
            for slot in range(min(period, params.threads)):
                chosen = {}  # unit -> conditions
                for count in family:
                    chosen.setdefault(slot % count, []).append(is_count[count])
                value = Signal(params.unit_bits, name=f"slot{slot}_of_{period}")
                choices = [Mux(Cat(when).any(), self.units[unit], 0) for unit, when in chosen.items()]
                m.d.sync += value.eq(reduce(or_, choices))
                taken.append(value)
            return taken

        twos = slots([count for count in counts if count % 3], 16)
        threes = slots([count for count in counts if count % 3 == 0], 36)
        three = Signal()
        m.d.sync += three.eq(Cat(is_count[count] for count in counts if count % 3 == 0).any())
        for thread in range(params.threads):
            m.d.sync += self.o[thread].eq(Mux(three, threes[thread % len(threes)], twos[thread % len(twos)]))
        return m


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


def _has_count(code, count):
    return of_sharing(code, lambda ka, kb: ka * kb == count)


def _writes(code, thread, threads, member):
    """Whether the thread holds the accumulators of this member of its group."""

    def writes(ka, kb):
        group, place = divmod(thread, ka * kb)
        return group < threads // (ka * kb) and place == member * kb

    return of_sharing(code, writes)
