"""Accumulators of one unit of a slave."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.logic import chosen, delay
from ..layouts import AccumulatorReadLayout
from ..params import FOLDS

__all__ = ["Sums", "SumsReader", "sums_of_slaves"]


class Sums(wiring.Component):
    """16 accumulators for each channel of each bank: one bank fills while others are finished, or read.

    They lie in memories that are read combinationally, so that a channel may come in every cycle. An accumulator of 32
    bits wraps; with ``maximum`` the larger one of both numbers stays.

    Latency: an addition is in memory in the next cycle. Throughput: one a cycle; nothing stalls it.

    Parameters
    ----------
    lanes : int
        The first so many accumulators can keep a maximum.
    bits : int
        Of the numbers of which a maximum is kept, signed.
    floats : bool
        There are sums of floats too, which are made elsewhere: those of a place in ``before`` are their beginning.
    apart : bool
        Each accumulator is read by itself, or not, out of a copy in block memory. What is being written is not read.
    depth : int
        Channels of all banks.

    Members
    -------
    i : In(array of 16 signed(32))
    valid : In(1)
    first : In(1)
        Accumulators begin with ``i``.
    maximum : In(1)
    address : In(range(depth))
        Channel, then bank.
    read : In(range(depth))
        Channel, then bank.
    on : In(16) if apart
        Accumulators that are read; the others are 0 in ``o``.
    o : Out(array of 16 32)
        Combinational from ``read``; if ``apart`` in the next cycle.
    floats : In(1) if floats
        Sums of floats are under way, instead of others.
    begun : In(range(depth)) if floats
        Channel, then bank, of accumulators that are to be added to.
    before : Out(array of 16 32) if floats
        Combinational from ``begun``.
    ended : In(range(depth)) if floats
        Channel, then bank, of accumulators that are replaced where ``valid``.
    sums : In(array of 16 32) if floats
        By these.
    """

    def __init__(self, lanes, bits, *, floats=False, apart=False, depth=16):
        self._lanes, self._bits, self._floats, self._apart, self._depth = lanes, bits, floats, apart, depth
        numbers, address = data.ArrayLayout(32, FOLDS), range(depth)
        more = {
            "floats": In(1),
            "begun": In(address),
            "before": Out(numbers),
            "ended": In(address),
            "sums": In(numbers),
        }
        super().__init__(
            (more if floats else {})
            | ({"on": In(FOLDS)} if apart else {})
            | {
                "i": In(data.ArrayLayout(signed(32), FOLDS)),
                "valid": In(1),
                "first": In(1),
                "maximum": In(1),
                "address": In(address),
                "read": In(address),
                "o": Out(data.ArrayLayout(32, FOLDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=FOLDS * 32, depth=self._depth, init=[])
        write, old = memory.write_port(granularity=32), memory.read_port(domain="comb")
        m.d.comb += [old.addr.eq(self.address), write.addr.eq(self.address)]
        if self._apart:
            self._read_apart(m, write)
        else:
            read = memory.read_port(domain="comb")
            m.d.comb += [read.addr.eq(self.read), self.o.eq(read.data)]
        # What is written is a sum, or the number that came; of maxima only where that is the larger one.
        added = ~(self.first | self.maximum)
        for place in range(FOLDS):
            term, before = self.i[place], old.data.word_select(place, 32).as_signed()
            m.d.comb += [
                write.en[place].eq(self.valid),
                write.data.word_select(place, 32).eq(term + (before & added.replicate(32))),
            ]
            if place < self._lanes:
                # The sign of a difference: a comparison would have tables in front of its carries.
                difference = before[: self._bits].as_signed() - term[: self._bits].as_signed()
                m.d.comb += write.en[place].eq(self.valid & (~self.maximum | self.first | difference[-1]))
        if self._floats:
            m.d.comb += self.before.eq(old.data)
            with m.If(self.floats):
                m.d.comb += [old.addr.eq(self.begun), write.addr.eq(self.ended), write.data.eq(self.sums)]
        return m

    def _read_apart(self, m, write):
        """Copies that are read: their registers stand here, so that tools see that none is read while it is written."""
        written = Signal()
        m.d.comb += written.eq(self.valid & (write.addr == self.read))
        for place, result in enumerate(self.o):
            m.submodules[f"copy{place}"] = copy = Memory(
                shape=32, depth=self._depth, init=[], attrs={"ram_style": "block"}
            )
            into, read = copy.write_port(), copy.read_port(domain="comb")
            m.d.comb += [
                into.addr.eq(write.addr),
                into.data.eq(write.data.word_select(place, 32)),
                into.en.eq(write.en[place]),
                read.addr.eq(self.read),
            ]
            with m.If(~written):
                m.d.sync += result.eq(read.data)
            with m.If(~self.on[place]):
                m.d.sync += result.eq(0)


def sums_of_slaves(params):
    """Accumulators of one channel, of each slave."""
    return data.ArrayLayout(data.ArrayLayout(32, params.sums), params.conv.slaves)


class SumsReader(wiring.Component):
    """Chooses in each slave, and then among them; or where accumulators are read one by one, joins all of them.

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
    on : Out(array of params.conv.slaves params.sums) if params.sums_apart
        Accumulators that are read.
    i : In(sums_of_slaves(params))
        What the slaves show of that channel and bank in the same cycle; if ``params.sums_apart`` in the next one, of
        those that are ``on``, and of the others 0.
    o : Out(array of params.conv.results 32)
        As ``ConvArray.sums``.
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        conv = params.conv
        super().__init__(
            ({"on": Out(data.ArrayLayout(params.sums, conv.slaves))} if params.sums_apart else {})
            | {
                "lanes": In(1),
                "granularity": In(range(7)),
                "read": In(AccumulatorReadLayout(params)),
                "i": In(sums_of_slaves(params)),
                "o": Out(data.ArrayLayout(32, conv.results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv = self._params.conv
        self._split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += self._split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        # Transfers of the accumulators that a slave has in lane-private mode: of a row in each half of them.
        words, half = conv.row_bytes // conv.results, self._params.sums // self._params.halves // conv.results
        self._transfers = [number for number in range(self._params.sums // conv.results) if number % half < words]
        self._transfer = self.read.index[exact_log2(conv.results) : exact_log2(self._params.sums)]
        if self._params.sums_apart:
            self._join(m)
        else:
            self._choose(m)
        return m

    def _join(self, m):
        """One place of a slave, or none: those that are not read are 0."""
        params, conv, read = self._params, self._params.conv, self.read
        place = Signal(range(params.sums))
        places, slaves = Signal(params.sums), Signal(conv.slaves)  # that are read
        m.d.comb += place.eq(read.index << self._split)
        for number in range(params.sums):
            transfer = number // conv.results
            in_lanes = self._transfer == transfer if transfer in self._transfers else 0
            m.d.comb += places[number].eq(Mux(self.lanes, in_lanes, place == number))
        groups = read.part[: exact_log2(conv.slaves // conv.results)]
        for number in range(conv.slaves):
            in_lanes = read.part[: exact_log2(conv.slaves)] == number
            m.d.comb += slaves[number].eq(Mux(self.lanes, in_lanes, groups == number // conv.results))

        # By the result that they are in a convolution, and in lane-private mode.
        joined = {(slave, place): [] for slave in range(conv.results) for place in range(conv.results)}
        for slave, sums in enumerate(self.i):
            m.d.comb += self.on[slave].eq(places & slaves[slave].replicate(params.sums))
            for place, each in enumerate(sums):
                joined[slave % conv.results, place % conv.results].append(each)
        totals = {}
        for (slave, place), each in joined.items():
            totals[slave, place] = Signal(32, name=f"joined{slave}_{place}")
            m.d.comb += totals[slave, place].eq(reduce(or_, each))
        for number, result in enumerate(self.o):
            by_slave = reduce(or_, (totals[number, place] for place in range(conv.results)))
            by_place = reduce(or_, (totals[slave, number] for slave in range(conv.results)))
            m.d.sync += result.eq(Mux(self.lanes, by_place, by_slave))

    def _choose(self, m):
        """Several places of all slaves."""
        params, conv, read = self._params, self._params.conv, self.read
        bits = 32 * conv.results
        # Convolution: of each slave the sums of as many places.
        by_place = []  # of a place all slaves
        for number in range(conv.results // conv.slaves):
            place = Signal(range(params.sums), name=f"place{number}")
            m.d.comb += place.eq((read.index + number) << self._split)
            of_slaves = Signal(data.ArrayLayout(32, conv.slaves), name=f"chosen{number}", reset_less=True)
            for slave, sums in enumerate(self.i):
                m.d.sync += of_slaves[slave].eq(sums.as_value().word_select(place, 32))
            by_place.append(of_slaves.as_value())
        # Lane-private mode: of one slave. By ``word_select`` words of thousands of bits take Amaranth minutes.
        rows = {}
        for slave, sums in enumerate(self.i):
            transfers = {number: sums.as_value().word_select(number, bits) for number in self._transfers}
            rows[slave] = chosen(self._transfer, transfers)
        own = delay(m, chosen(read.part[: exact_log2(conv.slaves)], rows), 1, name="own")
        m.d.sync += self.o.eq(Mux(self.lanes, own, Cat(by_place)))
