"""Reading of finished accumulators: those of one transfer, out of all slaves."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.delay import delay
from ..layouts import AccumulatorReadLayout
from .unit import FOLDS

__all__ = ["SumsReader"]


class SumsReader(wiring.Component):
    """Chooses in each slave, and then among them.

    Latency: 2 cycles. Throughput: a read a cycle; nothing stalls it.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    lanes : In(1)
        Lane-private mode. This and the next one are constant from a read to its sums.
    granularity : In(range(7))
    read : In(AccumulatorReadLayout(params))
        Without channel and bank, which the slaves have chosen by.
    i : In(array of params.conv.slaves array of params.sums 32)
        What the slaves show of that channel and bank in the same cycle.
    o : Out(array of params.conv.results 32)
        As ``ConvArray.sums``.
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        conv = params.conv
        super().__init__(
            {
                "lanes": In(1),
                "granularity": In(range(7)),
                "read": In(AccumulatorReadLayout(params)),
                "i": In(data.ArrayLayout(data.ArrayLayout(32, params.sums), conv.slaves)),
                "o": Out(data.ArrayLayout(32, conv.results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv, read, sums = self._params, self._params.conv, self.read, list(self.i)
        split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        bits = 32 * conv.results
        groups = max(1, conv.results // conv.slaves)
        across = min(conv.slaves, conv.results)
        part = delay(m, read.part, 1, name="read_part")

        # Convolution: of each slave the sums of ``groups`` places.
        chosen = []  # of a group all slaves
        for group in range(groups):
            place = Signal(range(params.sums), name=f"place{group}")
            m.d.comb += place.eq((read.index + group) << split)
            of_slaves = Signal(data.ArrayLayout(32, conv.slaves), name=f"chosen{group}", reset_less=True)
            for number, total in enumerate(sums):
                m.d.sync += of_slaves[number].eq(total.as_value().word_select(place, 32))
            chosen.append(of_slaves.as_value())
        # Lane-private mode: of one slave as many elements as there are results.
        elements = min(conv.row_bytes, params.sums)
        transfer = read.index[exact_log2(conv.results) :]
        rows = Cat(
            total.as_value()[: 32 * elements].word_select(transfer[: exact_log2(elements // conv.results)], bits)
            for total in sums
        )
        own = delay(m, rows.word_select(read.part[: exact_log2(conv.slaves)], bits), 1, name="own")
        in_order = Cat(group.word_select(part[: exact_log2(conv.slaves // across)], 32 * across) for group in chosen)
        m.d.sync += self.o.eq(Mux(self.lanes, own, in_order))
        return m
