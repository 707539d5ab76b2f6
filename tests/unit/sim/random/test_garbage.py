"""Garbage: mostly refused, for all kinds of reasons, and none of it moves a byte outside its windows."""

from collections import Counter

from tilewright.golden.spec import Error
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.compare.mixed_golden import run_golden
from tilewright.sim.random.garbage import garbage_mixes
from tilewright.sim.random.mixed import DESCRIPTOR_SLOTS, PAGE

PARAMS = TMAU_PRESETS["unit"]


def test_what_it_ends_with():
    batches = list(garbage_mixes(2, PARAMS, 500))
    assert [len(batch.orders) for batch in batches] == [DESCRIPTOR_SLOTS] * 4
    assert batches == list(garbage_mixes(2, PARAMS, 500))
    endings = Counter()
    for batch in batches:
        golden = run_golden(batch, PARAMS)
        endings.update(golden.endings)
        assert (golden.machine.smem[:128] == golden.shared[:128]).all()
        assert (golden.machine.gmem.data[:PAGE] == golden.contents[:PAGE]).all()
    assert 0.1 < endings[Error.NONE] / endings.total() < 0.5
    assert len(endings) > 20
