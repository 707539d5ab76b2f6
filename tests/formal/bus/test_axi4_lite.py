"""F3 of the register port: answers hold until accepted, one for each request, and none before it."""

from amaranth.hdl import Assert, Assume, Cover, Signal, Value

from support.formal import Spec, channel_rules, proved_and_covered
from tilewright.hw.bus.axi4_lite import Axi4LiteBridge
from tilewright.verify.formal import prove


class BridgeSpec(Spec):
    given, made = "accesses.answers", "accesses.requests"

    def specify(self, m, dut):
        requests, answers = dut.accesses.requests, dut.accesses.answers
        axi, error = dut.axi, answers.payload.error  # 1, as SLVERR is 2
        m.submodules += [channel_rules(axi, "b"), channel_rules(axi, "r")]
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        m.d.comb += Assert(~(first & (axi.bvalid | axi.rvalid)))

        # A target answers only requests.
        pending = Signal()
        with m.If(requests.valid & requests.ready):
            m.d.sync += pending.eq(1)
        with m.If(answers.valid & answers.ready):
            m.d.sync += pending.eq(0)
        m.d.comb += Assume(~answers.valid | pending)

        # Requests of either kind that are not answered yet; never more than one.
        writes, reads = Signal(2), Signal(2)
        write_accepted, read_accepted = axi.awvalid & axi.awready, axi.arvalid & axi.arready
        m.d.sync += [
            writes.eq(writes + write_accepted - (axi.bvalid & axi.bready)),
            reads.eq(reads + read_accepted - (axi.rvalid & axi.rready)),
        ]
        m.d.comb += [
            Assert(write_accepted == (axi.wvalid & axi.wready)),
            Assert(writes + reads == (requests.valid | pending)),
            Assert(~(requests.valid & pending)),
            Assert(dut.waiting == pending),
            Assert(~axi.bvalid | (writes == 1)),
            Assert(~axi.rvalid | (reads == 1)),
            Assert((writes + reads == 0) | (requests.payload.write == (writes == 1))),
            Assert(~(answers.valid & answers.ready) | (axi.bvalid & axi.bready) | (axi.rvalid & axi.rready)),
            # What the target answered is what the host sees.
            Assert(~axi.bvalid | (Value.cast(axi.bresp) == error << 1)),
            Assert(~axi.rvalid | ((Value.cast(axi.rresp) == error << 1) & (axi.rdata == answers.payload.data))),
            Cover(axi.bvalid & axi.bready),
            Cover(axi.rvalid & axi.rready),
        ]
        self._bounded_wait(m, axi.arvalid, read_accepted, write_accepted, "read")
        self._bounded_wait(m, axi.awvalid & axi.wvalid, write_accepted, read_accepted, "write")

        # The request is the one that was accepted.
        accepted = Signal.like(requests.payload)
        with m.If(write_accepted | read_accepted):
            m.d.sync += [accepted.data.eq(axi.wdata), accepted.strobe.eq(axi.wstrb), accepted.write.eq(write_accepted)]
        with m.If(write_accepted):
            m.d.sync += accepted.address.eq(axi.awaddr)
        with m.If(read_accepted):
            m.d.sync += accepted.address.eq(axi.araddr)
        with m.If(requests.valid):
            m.d.comb += Assert(requests.payload == accepted)
        with m.If(pending):
            m.d.comb += Assert(requests.payload.write == accepted.write)

    def _bounded_wait(self, m, offered, accepted, other_accepted, name):
        """While a request is offered, at most one of the other kind goes first."""
        passed = Signal(2, name=f"{name}_passed")
        with m.If(~offered | accepted):
            m.d.sync += passed.eq(0)
        with m.Elif(other_accepted):
            m.d.sync += passed.eq(passed + 1)
        m.d.comb += Assert(passed <= 1)
        m.d.comb += Assert((passed == 0) | (self.dut.accesses.requests.payload.write == (name == "read")))


@proved_and_covered(2, 8)
def test_bridge(mode, depth):
    prove(BridgeSpec(Axi4LiteBridge(12)), name=f"bus-axi4-lite-{mode}", mode=mode, depth=depth, proves="F3")
