"""Accumulators of a unit, and the selection of those that are read out."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.logic import delay, mux_tree
from ..layouts import AccumulatorReadLayout
from ..params import FOLDS

__all__ = ["Sums", "SumsReader", "sums_of_slaves"]


class Sums(wiring.Component):
    """16 accumulators for each channel of each bank: one bank fills while others are finished or read.

    They are in memories with combinational reads, so that a channel can be added to in every cycle. An accumulator of
    32 bits wraps; with ``maximum`` it keeps the larger of the two numbers.

    Latency: an addition is in memory in the next cycle. Throughput: one addition a cycle, without stalls.

    Parameters
    ----------
    lanes : int
        Accumulators, from the first one on, that can keep a maximum.
    bits : int
        Signed bits of the numbers of which a maximum is kept.
    floats : bool
        Floats are summed too, by a unit outside: it gets accumulators from ``operands`` and returns them in ``sums``.
    single_reads : bool
        Accumulators are read one by one, from copies in block RAM. No accumulator is read while it is written.
    depth : int
        Channels of all banks. Addresses are the channel, with the bank above.
    """

    def __init__(self, lanes, bits, *, floats=False, single_reads=False, depth=16):
        self._lanes, self._bits, self._floats, self._depth = lanes, bits, floats, depth
        self._single_reads = single_reads
        numbers, address = data.ArrayLayout(32, FOLDS), range(depth)
        float_ports = {
            "floats": In(1),  # floats are summed, and integers are not
            "operand_address": In(address),
            "operands": Out(numbers),  # combinational from ``operand_address``
            "sum_address": In(address),
            "sums": In(numbers),  # written to ``sum_address`` if ``valid``
        }
        super().__init__(
            (float_ports if floats else {})
            # Accumulators that are read; the others are 0 in ``o``.
            | ({"on": In(FOLDS)} if single_reads else {})
            | {
                "i": In(data.ArrayLayout(signed(32), FOLDS)),
                "valid": In(1),
                "first": In(1),  # accumulators begin with ``i``
                "maximum": In(1),
                "address": In(address),
                "read": In(address),
                # Combinational from ``read``, or with ``single_reads`` one cycle later.
                "o": Out(numbers),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=FOLDS * 32, depth=self._depth, init=[])
        write, old = memory.write_port(granularity=32), memory.read_port(domain="comb")
        m.d.comb += [old.addr.eq(self.address), write.addr.eq(self.address)]
        if self._single_reads:
            self._read_copies(m, write)
        else:
            read = memory.read_port(domain="comb")
            m.d.comb += [read.addr.eq(self.read), self.o.eq(read.data)]
        # Written is the sum, or ``i`` itself: as a maximum only if it is larger.
        adds = ~(self.first | self.maximum)
        for place in range(FOLDS):
            term, before = self.i[place], old.data.word_select(place, 32).as_signed()
            enable = self.valid
            if place < self._lanes:
                # The sign of the difference: a comparison would have LUTs before its carry chain.
                difference = before[: self._bits].as_signed() - term[: self._bits].as_signed()
                enable = self.valid & (~self.maximum | self.first | difference[-1])
            m.d.comb += [
                write.en[place].eq(enable),
                write.data.word_select(place, 32).eq(term + (before & adds.replicate(32))),
            ]
        if self._floats:
            m.d.comb += self.operands.eq(old.data)
            with m.If(self.floats):
                m.d.comb += [
                    old.addr.eq(self.operand_address),
                    write.addr.eq(self.sum_address),
                    write.data.eq(self.sums),
                ]
        return m

    def _read_copies(self, m, write):
        """Reads copies. The read registers are written out here, so that tools see that a read is disabled during a
        write to the same address."""
        conflict = self.valid & (write.addr == self.read)
        for place, result in enumerate(self.o):
            m.submodules[f"copy{place}"] = copy = Memory(
                shape=32, depth=self._depth, init=[], attrs={"ram_style": "block"}
            )
            copy_write, read = copy.write_port(), copy.read_port(domain="comb")
            m.d.comb += [
                copy_write.addr.eq(write.addr),
                copy_write.data.eq(write.data.word_select(place, 32)),
                copy_write.en.eq(write.en[place]),
                read.addr.eq(self.read),
            ]
            with m.If(~conflict):
                m.d.sync += result.eq(read.data)
            with m.If(~self.on[place]):
                m.d.sync += result.eq(0)


def sums_of_slaves(params):
    """Accumulators of one channel of each slave."""
    return data.ArrayLayout(data.ArrayLayout(32, params.sums), params.conv.slaves)


class SumsReader(wiring.Component):
    """Selects R accumulators, first in each slave and then among slaves; with ``params.single_reads`` the slaves
    have selected, and all their outputs are joined.

    Latency: 2 cycles. Throughput: a read a cycle, without stalls.

    Parameters
    ----------
    params : ConvUnitParams
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        conv = params.conv
        super().__init__(
            # Accumulators that are read.
            ({"on": Out(data.ArrayLayout(params.sums, conv.slaves))} if params.single_reads else {})
            | {
                "lanes": In(1),  # lane-private mode; as ``granularity``, constant from a read to its sums
                "granularity": In(range(7)),
                "read": In(AccumulatorReadLayout(params)),  # the slaves have selected channel and bank already
                # The slaves' accumulators of that channel and bank; with ``params.single_reads`` one cycle later, and 0
                # where not ``on``.
                "i": In(sums_of_slaves(params)),
                "o": Out(data.ArrayLayout(32, conv.results)),  # as ``ConvArray.sums``
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv = self._params.conv
        self._split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += self._split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        # Transfers of a slave's accumulators in lane-private mode: one row in each half of them.
        row_transfers = conv.row_bytes // conv.results
        half_transfers = self._params.sums // self._params.halves // conv.results
        self._transfers = [n for n in range(self._params.sums // conv.results) if n % half_transfers < row_transfers]
        self._transfer = self.read.index[exact_log2(conv.results) : exact_log2(self._params.sums)]
        if self._params.single_reads:
            self._join(m)
        else:
            self._choose(m)
        return m

    def _join(self, m):
        """At most one place of each slave."""
        params, conv, read = self._params, self._params.conv, self.read
        place = Signal(range(params.sums))
        places, slaves = Signal(params.sums), Signal(conv.slaves)  # those that are read
        m.d.comb += place.eq(read.index << self._split)
        for number in range(params.sums):
            transfer = number // conv.results
            in_lanes = self._transfer == transfer if transfer in self._transfers else 0
            m.d.comb += places[number].eq(Mux(self.lanes, in_lanes, place == number))
        groups = read.part[: exact_log2(conv.slaves // conv.results)]
        for number in range(conv.slaves):
            in_lanes = read.part[: exact_log2(conv.slaves)] == number
            m.d.comb += slaves[number].eq(Mux(self.lanes, in_lanes, groups == number // conv.results))

        # A sum is result ``slave`` in a convolution, and result ``place`` in lane-private mode, both modulo R.
        members = {(slave, place): [] for slave in range(conv.results) for place in range(conv.results)}
        for slave, sums in enumerate(self.i):
            m.d.comb += self.on[slave].eq(places & slaves[slave].replicate(params.sums))
            for place, value in enumerate(sums):
                members[slave % conv.results, place % conv.results].append(value)
        joined = {}
        for (slave, place), values in members.items():
            joined[slave, place] = Signal(32, name=f"joined{slave}_{place}")
            m.d.comb += joined[slave, place].eq(reduce(or_, values))
        for number, result in enumerate(self.o):
            by_slave = reduce(or_, (joined[number, place] for place in range(conv.results)))
            by_place = reduce(or_, (joined[slave, number] for slave in range(conv.results)))
            m.d.sync += result.eq(Mux(self.lanes, by_place, by_slave))

    def _choose(self, m):
        """The same places of all slaves, or in lane-private mode several places of one slave."""
        params, conv, read = self._params, self._params.conv, self.read
        bits = 32 * conv.results
        of_places = []
        for number in range(conv.results // conv.slaves):
            place = Signal(range(params.sums), name=f"place{number}")
            m.d.comb += place.eq((read.index + number) << self._split)
            of_slaves = Signal(data.ArrayLayout(32, conv.slaves), name=f"chosen{number}", reset_less=True)
            for slave, sums in enumerate(self.i):
                m.d.sync += of_slaves[slave].eq(sums.as_value().word_select(place, 32))
            of_places.append(of_slaves.as_value())
        # Amaranth would take minutes for a ``word_select`` of thousands of bits.
        rows = {}
        for slave, sums in enumerate(self.i):
            transfers = {number: sums.as_value().word_select(number, bits) for number in self._transfers}
            rows[slave] = mux_tree(self._transfer, transfers)
        own = delay(m, mux_tree(read.part[: exact_log2(conv.slaves)], rows), 1, name="own")
        m.d.sync += self.o.eq(Mux(self.lanes, own, Cat(of_places)))
