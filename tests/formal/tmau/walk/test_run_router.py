"""Every run leaves once, to the path that it is for, as it came and in order; what is offered holds."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.hw.tmau.layouts import BoxRunLayout, StoreRunLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.run_router import RunRouter
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"].replace(addr_width=16)


class RunRouterSpec(Elaboratable):
    """Keeps the runs that have come and not left: at most two."""

    def __init__(self):
        self.dut = RunRouter(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for name, port, assume in (
            ("tiles", dut.tiles, True),
            ("pixels", dut.pixels, True),
            ("loads", dut.loads, False),
            ("stores", dut.stores, False),
        ):
            m.submodules[f"{name}_rules"] = StreamRules(port, assume=assume)
        tile, pixel, load, store = (p.valid & p.ready for p in (dut.tiles, dut.pixels, dut.loads, dut.stores))
        given = Mux(dut.tiles.valid, Value.cast(dut.tiles.p), Value.cast(dut.pixels.p))

        first, second = Signal(BoxRunLayout(PARAMS)), Signal(BoxRunLayout(PARAMS))
        held = Signal(range(3))
        comes, leaves = tile | pixel, load | store
        m.d.sync += held.eq(held + comes - leaves)
        with m.If(leaves):
            m.d.sync += first.eq(second)
        with m.If(comes):
            with m.If(held == leaves):
                m.d.sync += Value.cast(first).eq(given)
            with m.Else():
                m.d.sync += Value.cast(second).eq(given)

        m.d.comb += [
            Assume(~(dut.tiles.valid & dut.pixels.valid)),
            Assert(held <= 2),
            Assert(dut.loads.valid == ((held != 0) & ~first.store)),
            Assert(dut.stores.valid == ((held != 0) & first.store)),
            Assert(~dut.loads.valid | (Value.cast(dut.loads.p) == Value.cast(first))),
            # A run is taken while there is space, whatever becomes of those before it.
            Assert(comes == ((dut.tiles.valid | dut.pixels.valid) & (held != 2))),
        ]
        for name, _ in StoreRunLayout(PARAMS):
            m.d.comb += Assert(~dut.stores.valid | (dut.stores.p[name] == first[name]))
        buffer = dut.buffer
        m.d.comb += [
            Assert((held != 0) == buffer.o.valid),
            Assert((held == 2) == buffer.skidded),
            Assert((held == 0) | (Value.cast(buffer.o.p) == Value.cast(first))),
            Assert((held != 2) | (Value.cast(buffer.skid) == Value.cast(second))),
        ]
        m.d.comb += [Cover(source & sink & (held == 1)) for source in (tile, pixel) for sink in (load, store)]
        m.d.comb += Cover(held == 2)
        return m

    def ports(self):
        dut = self.dut
        inputs = [signal for port in (dut.tiles, dut.pixels) for signal in (port.valid, port.payload)]
        return [*inputs, dut.loads.ready, dut.stores.ready]


def test_every_run_goes_to_its_path():
    spec = RunRouterSpec()
    prove(spec, spec.ports(), name="run-router", depth=2)


@pytest.mark.long
def test_every_way_is_reached():
    spec = RunRouterSpec()
    prove(spec, spec.ports(), name="run-router-cover", mode="cover", depth=4)
