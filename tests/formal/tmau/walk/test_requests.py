"""F6: each run sends one row and asks once for exactly the words that it does not share; F11: and never idles.

F7: no word is ever asked for that holds no byte of the tensor.
"""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.requests import RequestGenerator
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=32)  # with folded pixels


class RequestsSpec(Elaboratable):
    """Notes what the run at the input has already sent."""

    def __init__(self):
        self.dut = RequestGenerator(PARAMS)
        self.word = AnyConst(PARAMS.word_width)  # any bus word: what holds for it holds for all

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.runs_rules = StreamRules(dut.i, assume=True)
        m.submodules.rows_rules = StreamRules(dut.rows)
        run, row, request = dut.i.payload, dut.rows.payload, dut.requests.payload
        sends_row = dut.rows.valid & dut.rows.ready
        asks = dut.requests.valid & dut.requests.ready
        leaves = dut.i.valid & dut.i.ready
        m.d.comb += Assume((run.bytes != 0) & (run.bytes <= PARAMS.smem.size_bytes))

        has_row = Signal()
        m.d.sync += has_row.eq((has_row | sends_row) & ~leaves)
        # The last word of the inside run before this one, if that is of the same transfer.
        before, before_valid = Signal(PARAMS.word_width), Signal()
        words = Signal(len(request.beyond) + 1)
        offset, first = run.address[: PARAMS.bus_log2], run.address[PARAMS.bus_log2 :]
        m.d.comb += words.eq(((offset + run.bytes - 1) >> PARAMS.bus_log2) + 1)
        needed = run.inside & ~run.loop & (words != row.shared)
        m.d.comb += [
            Assert(dut.rows.valid == (dut.i.valid & ~has_row)),
            Assert(~has_row | dut.i.valid),
            Assert(~leaves | sends_row | has_row),
            Assert(~asks | leaves),
            Assert(before_valid == dut.previous_valid),
            Assert(~before_valid | (before == dut.previous)),
            Assert(~(leaves & needed) | asks),
            Assert(~dut.requests.valid | (dut.i.valid & needed & (sends_row | has_row))),
            # Two neighbours that are ready make nothing wait.
            Assert(leaves | ~(dut.i.valid & dut.rows.ready & dut.requests.ready)),
            # What has no words of memory does not wait for requests.
            Assert(leaves | ~(dut.i.valid & (has_row | dut.rows.ready) & (~run.inside | run.loop))),
        ]
        with m.If(leaves):
            with m.If(run.inside):
                m.d.sync += [before_valid.eq(1), before.eq(first + words - 1)]
            with m.If(run.last):
                m.d.sync += before_valid.eq(0)
        with m.If(dut.rows.valid):
            m.d.comb += [
                *(Assert(row[name] == run[name]) for name in ("inside", "skip", "last", "folded", "bytes")),
                Assert(row.offset == offset),
                Assert(row.shared == (run.inside & ~run.loop & before_valid & (first == before))),
            ]
        with m.If(dut.requests.valid):
            m.d.comb += Assert(request.word == (first + row.shared)[: PARAMS.word_width])
            m.d.comb += Assert(request.beyond == words - row.shared - 1)
            # Bytes of the run from its first to the first of the word, if it is asked for and not the run's first.
            ahead = Signal(PARAMS.addr_width)
            m.d.comb += ahead.eq((self.word << PARAMS.bus_log2) - run.address)
            asked = (self.word - request.word)[: PARAMS.word_width] <= request.beyond
            holds = (self.word == first) | (ahead < run.bytes)
            m.d.comb += Assert(~asked | (run.inside & ~run.loop & holds))
        m.d.comb += Cover(leaves & row.shared & ~needed)
        m.d.comb += Cover(asks & row.shared & has_row)
        return m

    def ports(self):
        dut = self.dut
        return [dut.i.valid, dut.i.payload, dut.rows.ready, dut.requests.ready]


def test_rows_and_requests():
    spec = RequestsSpec()
    prove(spec, spec.ports(), name="requests", depth=2, proves="F6 F7 F11")


@pytest.mark.long
def test_shared_words_are_reached():
    spec = RequestsSpec()
    prove(spec, spec.ports(), name="requests-cover", mode="cover", depth=6)
