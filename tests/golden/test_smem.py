"""The golden barrier: phases, refusals, and words computed by hand."""

import pytest

from tilewright.golden.smem import Barrier
from tilewright.spec import BarrierOp

PACKED = {
    "one arrival pending of one": (Barrier(1, 1, 0, 0), 0x0000_0000_0010_0001),
    "most arrivals, phase 1": (Barrier(0xFFFFF, 0xFFFFF, 0, 1), 0x2000_00FF_FFFF_FFFF),
    "128 bytes to come": (Barrier(2, 3, 128, 0), 0x0000_8000_0030_0002),
    "128 bytes too early": (Barrier(0, 1, -128, 0), 0x1FFF_8000_0010_0000),
    "lowest count": (Barrier(0, 1, -(1 << 20), 1), 0x3000_0000_0010_0000),
    "highest count": (Barrier(0, 1, (1 << 20) - 1, 0), 0x0FFF_FF00_0010_0000),
}


@pytest.mark.parametrize(("barrier", "word"), PACKED.values(), ids=PACKED)
def test_packed(barrier, word):
    assert barrier.pack() == word
    assert Barrier.unpack(word) == barrier


def test_reserved_bits_are_dropped():
    assert Barrier.unpack(0xC000_0000_0010_0001) == Barrier(1, 1)


def test_expect_then_land():
    barrier = Barrier()
    barrier.init(1)
    assert not barrier.expect_tx(256)
    assert not barrier.arrive()
    assert not barrier.try_wait(0)
    assert not barrier.complete_tx(128)
    assert barrier.complete_tx(128)
    assert barrier == Barrier(pending=1, expected=1, transactions=0, phase=1)
    assert barrier.try_wait(0)
    assert not barrier.try_wait(1)


def test_land_then_expect():
    barrier = Barrier()
    barrier.init(2)
    assert not barrier.complete_tx(64)
    assert not barrier.arrive(2)
    assert barrier.expect_tx(64)
    assert barrier == Barrier(pending=2, expected=2, transactions=0, phase=1)


def test_phases_alternate():
    barrier = Barrier()
    barrier.init(1)
    phases = []
    for _ in range(4):
        assert barrier.arrive()
        phases.append(barrier.phase)
    assert phases == [1, 0, 1, 0]


REFUSED = {
    "no arrivals expected": (BarrierOp.INIT, 0, "a barrier expects 1 to 1048575 arrivals, not 0"),
    "too many expected": (BarrierOp.INIT, 1 << 20, "a barrier expects 1 to 1048575 arrivals, not 1048576"),
    "no arrivals": (BarrierOp.ARRIVE, 0, "0 arrivals at a barrier that waits for 2"),
    "too many arrivals": (BarrierOp.ARRIVE, 3, "3 arrivals at a barrier that waits for 2"),
    "count too high": (BarrierOp.EXPECT_TX, (1 << 20) - 5, "transaction count 5 cannot change by 1048571"),
    "count too low": (BarrierOp.COMPLETE_TX, (1 << 20) + 6, "transaction count 5 cannot change by -1048582"),
    "negative count": (BarrierOp.COMPLETE_TX, -1, "a count of bytes is not negative: -1"),
    "unknown operation": (7, 1, "no barrier operation has the number 7"),
}


@pytest.mark.parametrize(("op", "value", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refused(op, value, sentence):
    barrier = Barrier(pending=2, expected=3, transactions=5, phase=1)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        barrier.apply(op, value)
    assert barrier == Barrier(pending=2, expected=3, transactions=5, phase=1)
