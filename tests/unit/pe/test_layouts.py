"""Tables of ka and kb: every entry."""

from amaranth.hdl import Module, Signal

from tilewright.hw.pe.layouts import SHARINGS, SPLIT_COLUMNS, columns_per_item, is_split, of_sharing, sharing_code
from tilewright.hw.pe.params import LANES
from tilewright.verify.pysim.simulate import simulate


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


def test_items_fit_the_lanes():
    """Whole steps, as many as fit, or the first columns of one."""
    for ka, kb in SHARINGS:
        columns = columns_per_item(ka, kb)
        assert columns * kb <= LANES
        if is_split(ka, kb):
            assert columns == SPLIT_COLUMNS < ka and ka * kb > LANES and (ka - SPLIT_COLUMNS) * kb <= LANES
        else:
            assert columns % ka == 0 and (columns + ka) * kb > LANES
