"""Protocol monitors of an AXI4 port, one for each direction: the same components watch proofs and simulations."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .axi_outstanding import OutstandingBursts, OutstandingWrites
from .axi_rules import Rule, Wait
from .axi_watch import EXOKAY, ChannelMonitor

__all__ = ["Axi4Monitor", "Axi4ReadMonitor", "Axi4WriteMonitor"]

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

    Members
    -------
    *arid and all others of the port* : In(id_width)
        By the names of the specification, each with its width.
    in_flight : Out(range(2 * max_outstanding << id_width))
        Bursts accepted and not yet answered in full.
    *those of ChannelMonitor* : Out(len(Rule))

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

    Members
    -------
    *awid and all others of the port* : In(id_width)
        By the names of the specification, each with its width.
    in_flight : Out(range(2 * max_outstanding))
        Bursts asked for and not yet answered.
    *those of ChannelMonitor* : Out(len(Rule))

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

    Members
    -------
    violations : Out(len(Rule))
    late : Out(len(Wait))
        As of ``ChannelMonitor``, of both directions.
    """

    def __init__(self, port, *, reads, writes, max_burst):
        self._port = port
        signature = port.signature
        sizes = {name: getattr(signature, name) for name in ("addr_width", "data_width", "id_width")}
        self._reads = Axi4ReadMonitor(**sizes, max_burst=max_burst, max_outstanding=reads)
        self._writes = Axi4WriteMonitor(**sizes, max_burst=max_burst, max_outstanding=writes)
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
