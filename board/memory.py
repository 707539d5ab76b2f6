"""Global memory in block memory of the chip, behind AXI4, with a port for the computer that fills and reads it."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from tilewright.hw.bus.axi4 import Axi4Signature, Response
from tilewright.hw.bus.axi4_lite import AccessSignature
from tilewright.sim.hdl.word_array import WordArray

__all__ = ["BlockMemory"]


class BlockMemory(wiring.Component):
    """An AXI4 subordinate that answers in order, one burst of either direction at a time, from address 0 on.

    Bursts are INCR and start at a bus word. A read brings its first beat 2 cycles after its address, then one beat a
    cycle; data of a write are accepted from the cycle after their address on, one beat a cycle; the answer comes in the
    cycle after the last one. A burst outside is answered with DECERR and writes nothing. It must lie on one side of the
    end, as a burst within 4 KiB does.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Of the AXI port.
    size_bytes : int
        A power of two, 4096 at least.
    simulated : bool
        The memory is a :class:`~tilewright.sim.hdl.word_array.WordArray`, which is faster to build and cannot be
        synthesised.
    """

    def __init__(self, *, addr_width, data_width, id_width, size_bytes, simulated=False):
        if not isinstance(size_bytes, int) or size_bytes & (size_bytes - 1) or size_bytes < 4096:
            raise ValueError(f"size_bytes must be a power of two, 4096 at least, not {size_bytes!r}")
        self._size_log2 = size_bytes.bit_length() - 1
        if self._size_log2 > addr_width:
            raise ValueError(
                f"size_bytes must be at most {1 << addr_width}, all that can be addressed, not {size_bytes}"
            )
        self._word_bytes = data_width // 8
        depth = size_bytes // self._word_bytes
        self.memory = (
            WordArray(width=data_width, depth=depth) if simulated else Memory(shape=data_width, depth=depth, init=[])
        )
        super().__init__(
            # 32-bit words of the memory. Accepted between bursts of the same direction, a read also not while a beat
            # waits; a write is answered 1 cycle, a read 2 cycles later. The next one is accepted when the answer has
            # been taken.
            {"axi": In(Axi4Signature(addr_width, data_width, id_width)), "accesses": In(AccessSignature())}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read, write = self._ports(m)
        low = (self._word_bytes - 1).bit_length()
        request = self.accesses.requests.payload
        host = {"word": request.address[low : self._size_log2], "lane": request.address[2:low]}
        reads, fetched = self._serve_reads(m, read, low, host)
        writes = self._serve_writes(m, write, low, host)
        self._answer_host(m, reads, fetched, writes)
        return m

    def _ports(self, m):
        """A port that reads and one that writes, each with ``addr``, ``data`` and ``en``."""
        memory = self.memory
        if isinstance(memory, Memory):
            return memory.read_port(), memory.write_port(granularity=8)
        m.d.comb += memory.write_enable.eq(1)  # the bytes of the strobe
        return (
            SimpleNamespace(addr=memory.read_address, data=memory.read_data, en=memory.read_enable),
            SimpleNamespace(addr=memory.write_address, data=memory.write_data, en=memory.write_strobe),
        )

    def _serve_reads(self, m, port, low, host):
        """AR and R; returns that the host may read in this cycle, and what it read in the cycle before."""
        axi = self.axi
        busy, outside, left = Signal(), Signal(), Signal(8)
        word = Signal(self._size_log2 - low)
        free, issue, turn = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~axi.rvalid | axi.rready),
            issue.eq(busy & free),
            turn.eq(~busy & ~axi.rvalid),
            axi.arready.eq(~busy),
            port.addr.eq(Mux(busy, word, host["word"])),
            port.en.eq(Mux(busy, free, turn)),
            axi.rdata.eq(port.data),
        ]
        with m.If(free):
            m.d.sync += axi.rvalid.eq(busy)
        with m.If(issue):
            m.d.sync += [
                axi.rlast.eq(left == 0),
                axi.rresp.eq(Mux(outside, Response.DECERR, Response.OKAY)),
                word.eq(word + 1),
                left.eq(left - 1),
                busy.eq(left != 0),
            ]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                busy.eq(1),
                axi.rid.eq(axi.arid),
                Cat(word, outside).eq(Cat(axi.araddr[low : self._size_log2], axi.araddr[self._size_log2 :].any())),
                left.eq(axi.arlen),
            ]
        lane = Signal.like(host["lane"])
        m.d.sync += lane.eq(host["lane"])
        return turn, port.data.word_select(lane, 32)

    def _serve_writes(self, m, port, low, host):
        """AW, W and B; returns that the host may write in this cycle."""
        axi = self.axi
        busy, outside = Signal(), Signal()
        word = Signal(self._size_log2 - low)
        request = self.accesses.requests
        lanes = self._word_bytes // 4
        m.d.comb += [
            axi.awready.eq(~busy & ~axi.bvalid),
            axi.wready.eq(busy),
            axi.bresp.eq(Mux(outside, Response.DECERR, Response.OKAY)),
        ]
        with m.If(busy):
            m.d.comb += [
                port.addr.eq(word),
                port.data.eq(axi.wdata),
                port.en.eq(Mux(axi.wvalid & ~outside, axi.wstrb, 0)),
            ]
        with m.Else():
            writes = request.valid & request.ready & request.payload.write
            m.d.comb += [
                port.addr.eq(host["word"]),
                port.data.eq(request.payload.data.replicate(lanes)),
                port.en.eq(
                    Cat(
                        request.payload.strobe & (writes & (host["lane"] == lane)).replicate(4) for lane in range(lanes)
                    )
                ),
            ]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [
                busy.eq(1),
                axi.bid.eq(axi.awid),
                Cat(word, outside).eq(Cat(axi.awaddr[low : self._size_log2], axi.awaddr[self._size_log2 :].any())),
            ]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += word.eq(word + 1)
            with m.If(axi.wlast):
                m.d.sync += [busy.eq(0), axi.bvalid.eq(1)]
        return ~busy

    def _answer_host(self, m, reads, fetched, writes):
        requests, answers = self.accesses.requests, self.accesses.answers
        reading = Signal()
        idle = ~reading & ~answers.valid
        m.d.comb += requests.ready.eq(idle & Mux(requests.payload.write, writes, reads))
        accepted = requests.valid & requests.ready
        m.d.sync += reading.eq(accepted & ~requests.payload.write)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(reading | (accepted & requests.payload.write)):
            m.d.sync += [answers.valid.eq(1), answers.payload.data.eq(fetched), answers.payload.error.eq(0)]
