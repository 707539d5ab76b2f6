"""Every run leaves once, to the path that it is for, and as it came; what is offered holds."""

from amaranth import Module, Mux
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.hw.tmau.layouts import StoreRunLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.run_router import RunRouter
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class RunRouterSpec(Elaboratable):
    """The router keeps nothing: what holds in a cycle holds for ever."""

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
        offered = dut.tiles.valid | dut.pixels.valid
        run = Mux(dut.tiles.valid, Value.cast(dut.tiles.p), Value.cast(dut.pixels.p))
        is_store = Mux(dut.tiles.valid, dut.tiles.p.store, dut.pixels.p.store)
        m.d.comb += [
            Assume(~(dut.tiles.valid & dut.pixels.valid)),
            Assert(dut.loads.valid == (offered & ~is_store)),
            Assert(dut.stores.valid == (offered & is_store)),
            Assert((tile | pixel) == (load | store)),
            Assert(~dut.loads.valid | (Value.cast(dut.loads.p) == run)),
        ]
        for name, _ in StoreRunLayout(PARAMS):
            for port in (dut.tiles, dut.pixels):
                m.d.comb += Assert(~port.valid | (dut.stores.p[name] == port.p[name]))
        m.d.comb += [Cover(source & sink) for source in (tile, pixel) for sink in (load, store)]
        return m

    def ports(self):
        dut = self.dut
        inputs = [signal for port in (dut.tiles, dut.pixels) for signal in (port.valid, port.payload)]
        return [*inputs, dut.loads.ready, dut.stores.ready]


def test_every_run_goes_to_its_path():
    spec = RunRouterSpec()
    prove(spec, spec.ports(), name="run-router", depth=2)


def test_every_way_is_reached():
    spec = RunRouterSpec()
    prove(spec, spec.ports(), name="run-router-cover", mode="cover", depth=3)
