"""Protocol monitors of an AXI4 port: the bursts under way, and the rules of reads and writes."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .axi_channels import EXOKAY, ChannelMonitor, Rule, Wait

__all__ = ["Axi4Monitor", "Axi4ReadMonitor", "Axi4WriteMonitor", "OutstandingBursts", "OutstandingWrites"]


class OutstandingBursts(wiring.Component):
    """Lengths of the bursts of one ID that are in flight, oldest first, and the position in the oldest.

    The outputs are about the cycles before: a burst pushed now counts from the next cycle on. A push to a full table
    is ignored, and so is a beat for an empty one.

    Parameters
    ----------
    depth : int
        Bursts that fit.

    Attributes
    ----------
    lengths, head, position
        The memory, the place in it of the oldest burst, and the beats of that which have come: for proofs.
    """

    def __init__(self, depth):
        index_width = ceil_log2(depth)
        self.lengths = Memory(shape=8, depth=1 << index_width, init=[])
        self.head = Signal(index_width)
        self.position = Signal(8)
        # The next beat is the last one of its burst; low while nothing is in flight.
        # Bursts in flight.
        # A beat is accepted in this cycle.
        # A burst of ``length`` beats minus one is accepted in this cycle.
        super().__init__({"push": In(1), "length": In(8), "beat": In(1), "level": Out(index_width + 1), "last": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.lengths = self.lengths
        write = self.lengths.write_port()
        read = self.lengths.read_port(domain="comb")

        beat = self.beat & (self.level != 0)
        ended = beat & self.last
        m.d.comb += [
            read.addr.eq(self.head),
            self.last.eq((self.level != 0) & (self.position == read.data)),
            write.addr.eq(self.head + self.level),
            write.data.eq(self.length),
            write.en.eq(self.push & ((self.level != self.lengths.depth) | ended)),
        ]
        m.d.sync += self.level.eq(self.level + write.en - ended)
        with m.If(beat):
            m.d.sync += self.position.eq(Mux(ended, 0, self.position + 1))
            m.d.sync += self.head.eq(self.head + ended)
        return m


class OutstandingWrites(wiring.Component):
    """Matches write requests with bursts of data, whichever come first: both are in the same order.

    What one side is ahead of the other is kept: requests whose data are not complete, or, while ``ahead`` is high,
    complete bursts of data that have not been asked for. There are never both. A push to a full table is ignored.

    Parameters
    ----------
    depth : int
        Bursts that either side may be ahead.
    id_width : int

    Attributes
    ----------
    bursts, head
        The memory, and the place in it of the oldest burst: for proofs.
    """

    def __init__(self, *, depth, id_width):
        index_width = ceil_log2(depth)
        self.bursts = Memory(shape=_EntryLayout(id_width), depth=1 << index_width, init=[])
        self.head = Signal(index_width)
        super().__init__(
            {
                # A request of ``length`` beats minus one is accepted in this cycle.
                "request": In(1),
                "id": In(id_width),
                "length": In(8),
                # A beat of data is accepted in this cycle.
                "beat": In(1),
                # And it ends its burst.
                "beat_last": In(1),
                # Bursts by which one side is ahead, up to the previous cycle.
                "level": Out(index_width + 1),
                # It is the data; low while ``level`` is zero.
                "ahead": Out(1),
                # Beats that have come of the burst of data that is not complete.
                "position": Out(8),
                # In this cycle, a burst of data turns out to be longer or shorter than its request. Combinational.
                "mismatch": Out(1),
                # In this cycle, both request and data of a burst have been accepted. Combinational.
                "complete": Out(1),
                "complete_id": Out(id_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.bursts = self.bursts
        write = self.bursts.write_port()
        read = self.bursts.read_port(domain="comb")
        oldest = read.data

        burst = self.beat & self.beat_last
        # The burst of data that is under way is the next one to be asked for, if neither is ahead.
        equal = self.level == 0
        with m.If(self.ahead):
            m.d.comb += [
                self.complete.eq(self.request),
                self.complete_id.eq(self.id),
                self.mismatch.eq(self.request & (self.length != oldest.length)),
            ]
        with m.Elif(equal):
            come = self.position + self.beat
            m.d.comb += [
                self.complete.eq(self.request & burst),
                self.complete_id.eq(self.id),
                self.mismatch.eq(self.request & Mux(burst, self.length != self.position, self.length < come)),
            ]
        with m.Else():
            m.d.comb += [
                self.complete.eq(burst),
                self.complete_id.eq(oldest.id),
                self.mismatch.eq(self.beat & (self.beat_last != (self.position == oldest.length))),
            ]

        with m.If(self.beat & ~self.beat_last & (self.position == 0xFF)):
            m.d.comb += self.mismatch.eq(1)  # no request is that long

        pop = self.complete & ~equal
        pushed = Mux(self.ahead, burst, Mux(equal, self.request ^ burst, self.request))
        m.d.comb += [
            read.addr.eq(self.head),
            write.addr.eq(self.head + self.level),
            write.data.id.eq(self.id),
            write.data.length.eq(Mux(self.ahead | (equal & burst), self.position, self.length)),
            write.en.eq(pushed & ((self.level != self.bursts.depth) | pop)),
        ]
        following = (self.level + write.en - pop)[: len(self.level)]
        m.d.sync += [
            self.level.eq(following),
            self.head.eq(self.head + pop),
            self.ahead.eq((following != 0) & Mux(equal, burst, self.ahead)),
        ]
        with m.If(self.beat):
            m.d.sync += self.position.eq(Mux(burst, 0, self.position + 1))
        return m


class _EntryLayout(data.StructLayout):
    """A burst of a :class:`OutstandingWrites`; the ID counts only if it is a request."""

    def __init__(self, id_width):
        super().__init__({"id": id_width, "length": 8})


_REQUEST = {"len": 8, "size": 3, "burst": 2, "prot": 3, "cache": 4}


class Axi4ReadMonitor(ChannelMonitor):
    """Watches the read channels.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Bits of ARADDR, RDATA and ARID.
    max_outstanding : int
    **limits
        ``max_burst`` and ``patience``; see ``ChannelMonitor``.

    Attributes
    ----------
    tables : list of OutstandingBursts
        One for each ID: for proofs.
    """

    def __init__(self, *, addr_width, data_width, id_width, max_outstanding, **limits):
        channels = {
            "ar": {"id": id_width, "addr": addr_width} | _REQUEST,
            "r": {"id": id_width, "data": data_width, "resp": 2, "last": 1},
        }
        # Bursts accepted and not yet answered in full.
        outputs = {"in_flight": Out(range(2 * max_outstanding << id_width))}
        super().__init__(channels, data_width=data_width, max_outstanding=max_outstanding, outputs=outputs, **limits)
        self.tables = [OutstandingBursts(max_outstanding) for _ in range(1 << id_width)]

    def check_order(self, m, after_reset):
        """Beats belong to requests: one table for each ID."""
        rvalid = self.rvalid & ~after_reset
        accepted = self.arvalid & self.arready
        pending = Signal(len(self.tables))
        last = Signal.like(pending)
        for number, table in enumerate(self.tables):
            m.submodules[f"table_{number}"] = table
            m.d.comb += [
                table.push.eq(accepted & (self.arid == number)),
                table.length.eq(self.arlen),
                table.beat.eq(rvalid & self.rready & (self.rid == number)),
                pending[number].eq(table.level != 0),
                last[number].eq(table.last),
            ]
        expected = pending.bit_select(self.rid, 1)
        expect_last = last.bit_select(self.rid, 1)
        ended = rvalid & self.rready & expect_last
        m.d.comb += self.in_flight.eq(sum(table.level for table in self.tables))
        self.flag(m, Rule.AR_OUTSTANDING, accepted & (self.in_flight >= self.max_outstanding) & ~ended)
        self.flag(m, Rule.R_UNREQUESTED, rvalid & ~expected)
        self.flag(m, Rule.R_LAST, rvalid & expected & (self.rlast != expect_last))
        self.flag(m, Rule.R_EXCLUSIVE, rvalid & (self.rresp == EXOKAY))

    def waits(self):
        """The condition of each wait."""
        return {
            Wait.ARREADY: self.arvalid & ~self.arready,
            Wait.RVALID: (self.in_flight != 0) & ~self.rvalid,
            Wait.RREADY: self.rvalid & ~self.rready,
        }


class Axi4WriteMonitor(ChannelMonitor):
    """Watches the write channels. Data may come before their request.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Bits of AWADDR, WDATA and AWID.
    max_outstanding : int
    **limits
        ``max_burst`` and ``patience``; see ``ChannelMonitor``.

    Attributes
    ----------
    table : OutstandingWrites
        By how much requests or data are ahead: for proofs.
    unanswered : list of Signal
        Bursts of each ID, request and data accepted, that have no response yet: for proofs.
    """

    def __init__(self, *, addr_width, data_width, id_width, max_outstanding, **limits):
        channels = {
            "aw": {"id": id_width, "addr": addr_width} | _REQUEST,
            "w": {"data": data_width, "strb": data_width // 8, "last": 1},
            "b": {"id": id_width, "resp": 2},
        }
        # Bursts asked for and not yet answered.
        outputs = {"in_flight": Out(range(2 * max_outstanding))}
        super().__init__(channels, data_width=data_width, max_outstanding=max_outstanding, outputs=outputs, **limits)
        self.table = OutstandingWrites(depth=max_outstanding, id_width=id_width)
        self.unanswered = [
            Signal(range(2 * max_outstanding), name=f"unanswered_{number}") for number in range(1 << id_width)
        ]

    def check_order(self, m, after_reset):
        """Data belong to requests, in order, and responses to complete bursts of their ID."""
        m.submodules.table = table = self.table
        requested = self.awvalid & self.awready
        m.d.comb += [
            table.request.eq(requested),
            table.id.eq(self.awid),
            table.length.eq(self.awlen),
            table.beat.eq(self.wvalid & self.wready),
            table.beat_last.eq(self.wlast),
        ]
        bvalid = self.bvalid & ~after_reset
        due = Signal(len(self.unanswered))
        answered = bvalid & self.bready & due.bit_select(self.bid, 1)
        for number, count in enumerate(self.unanswered):
            complete = table.complete & (table.complete_id == number)
            m.d.comb += due[number].eq(count != 0)
            m.d.sync += count.eq(count + complete - (answered & (self.bid == number)))
        m.d.sync += self.in_flight.eq(self.in_flight + requested - answered)

        too_far = table.beat & table.beat_last & ~requested & table.ahead & (table.level >= self.max_outstanding)
        self.flag(m, Rule.AW_OUTSTANDING, requested & (self.in_flight >= self.max_outstanding) & ~answered)
        self.flag(m, Rule.W_LAST, table.mismatch)
        self.flag(m, Rule.W_LEAD, too_far)
        self.flag(m, Rule.B_UNREQUESTED, bvalid & ~due.bit_select(self.bid, 1))
        self.flag(m, Rule.B_EXCLUSIVE, bvalid & (self.bresp == EXOKAY))

    def waits(self):
        """The condition of each wait. Neither AWVALID nor WVALID may wait for the other channel's READY."""
        table = self.table
        even = table.level == 0
        asked = (~even & ~table.ahead) | (even & self.awvalid)
        begun = table.ahead | (even & ((table.position != 0) | self.wvalid))
        complete = sum(count != 0 for count in self.unanswered) != 0
        return {
            Wait.AWREADY: self.awvalid & ~self.awready,
            Wait.AWVALID: begun & ~self.awvalid,
            Wait.WREADY: self.wvalid & ~self.wready,
            Wait.WVALID: asked & ~self.wvalid,
            Wait.BVALID: complete & ~self.bvalid,
            Wait.BREADY: self.bvalid & ~self.bready,
        }


class Axi4Monitor(wiring.Component):
    """Both monitors at one port.

    Parameters
    ----------
    port : interface
        Of an ``Axi4Signature``.
    reads, writes : int
        ``max_outstanding`` of either direction.
    max_burst : int
    """

    def __init__(self, port, *, reads, writes, max_burst):
        self._port = port
        signature = port.signature
        sizes = {name: getattr(signature, name) for name in ("addr_width", "data_width", "id_width")}
        self._reads = Axi4ReadMonitor(**sizes, max_burst=max_burst, max_outstanding=reads)
        self._writes = Axi4WriteMonitor(**sizes, max_burst=max_burst, max_outstanding=writes)
        # See ``ChannelMonitor``; of both directions.
        super().__init__({"violations": Out(len(Rule)), "late": Out(len(Wait))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.reads = reads = self._reads
        m.submodules.writes = writes = self._writes
        m.d.comb += [
            *reads.observe(self._port),
            *writes.observe(self._port),
            self.violations.eq(reads.violations | writes.violations),
            self.late.eq(reads.late | writes.late),
        ]
        return m
