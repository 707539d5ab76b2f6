"""Odd orders: mostly refused, and by every rule of their operation."""

import random
from dataclasses import replace

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error, Opcode
from tilewright.verify.compare.mixed_run import run_golden
from tilewright.verify.random.commands import odd_order, perhaps_odd
from tilewright.verify.random.mixed import random_mixes

PARAMS = TMAU_PRESETS["default"]


def test_most_are_refused():
    rng, endings, count = random.Random(5), set(), 0
    for batch in random_mixes(5, PARAMS, 400):
        batch = replace(batch, windows=(False, False))
        good = [order for order, ending in zip(batch.orders, run_golden(batch, PARAMS).endings, strict=True)
                if not ending and (order.tmap or "size" in order.fields or "shape" in order.fields)]  # fmt: skip
        odd = tuple(odd_order(rng, order, PARAMS.smem.size_bytes) for order in good)
        ends = run_golden(replace(batch, orders=odd), PARAMS).endings
        endings |= {(order.fields["opcode"], end) for order, end in zip(good, ends, strict=True)}
        count += sum(map(bool, ends)) - len(ends) / 2
    assert count > 0
    assert endings >= {(Opcode.LOAD, Error.SMEM_RANGE), (Opcode.STORE, Error.COORDS), (Opcode.REDUCE, Error.REDUCTION),
                       (Opcode.COPY_BLOCK, Error.OVERLAP), (Opcode.REPLACE, Error.FIELD)}  # fmt: skip


def test_only_sometimes():
    rng, order = random.Random(1), next(random_mixes(1, PARAMS, 1)).orders[0]
    assert all(perhaps_odd(rng, order, 4096, 0) is order for _ in range(20))
    assert any(perhaps_odd(rng, order, 4096, 1) != order for _ in range(20))
