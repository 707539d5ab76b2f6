"""Tables of ka and kb: every entry."""

from amaranth import Module, Signal

from tilewright.hw.pe.sharing import SHARINGS, of_sharing, sharing_code
from tilewright.sim.pysim.simulate import simulate


def test_every_sharing():
    m = Module()
    ka, kb, larger, triple = Signal(2), Signal(2), Signal(), Signal()
    code = sharing_code(ka, kb)
    m.d.comb += [
        larger.eq(of_sharing(code, lambda ka, kb: ka > kb)),
        triple.eq(of_sharing(code, lambda ka, kb: ka * kb % 3 == 0)),
    ]

    async def testbench(ctx):
        assert len(set(SHARINGS)) == 16
        for a, b in SHARINGS:
            ctx.set(ka, a - 1)
            ctx.set(kb, b - 1)
            assert ctx.get(larger) == (a > b)
            assert ctx.get(triple) == (3 in (a, b))

    simulate(m, testbench)
