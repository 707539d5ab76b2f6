"""Expected cycles of attention's two products (docs/performance.md, "Networks")."""

from pathlib import Path

from tilewright import network
from tilewright.network.drawn import NetworkMaker
from tilewright.results import record
from tilewright.tools.docs.figures import stale

ROOT = Path(__file__).parents[3]
HEADS, DEEP = 12, 64


def attention(rows):
    """Both products of a layer of BERT-base or ViT-B, with a function where attention has its Softmax."""
    maker, wide = NetworkMaker(1), HEADS * DEEP

    def head(*order):
        return maker.transpose(maker.reshape(maker.input((1, rows, wide)), 1, rows, HEADS, DEEP), *order)

    scores = maker.function(maker.product(head(0, 2, 1, 3), head(0, 2, 3, 1)))
    maker.reshape(maker.transpose(maker.product(scores, head(0, 2, 1, 3)), 0, 2, 1, 3), 1, rows, wide)
    return maker.graph()


def test_products_of_heads():
    """Operands and results lie where they are read, but for one transpose."""
    lines = {}
    for rows in (128, 197, 384):
        plan = network.compile(attention(rows), "default").plan
        scores, moves, results = plan.layers
        assert (bool(scores.moves), bool(moves.moves), bool(results.moves)) == (False, True, False)
        assert scores.macs == results.macs == HEADS * rows * rows * DEEP
        ends = [max(span.end for span in plan.spans if span.layer == number) for number in range(3)]
        cycles = ends[0] + ends[2] - ends[1]
        share = round(100 * plan.macs / plan.machine.conv.peak / cycles, 1)
        lines[f"{rows} rows"] = {"cycles": cycles, "share": share, "transpose": ends[1] - ends[0]}
        assert share > 75
    print(lines)
    record("attention-default", rows=lines)
    assert not stale("attention-default", ROOT)
