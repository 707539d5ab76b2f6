"""Sizes that are refused. Proofs show the bursts and beats, and that none idles (tests/formal/bus/test_bursts.py)."""

import pytest

from tilewright.hw.bus.bursts import BurstSplitter


@pytest.mark.parametrize(
    ("bus_bytes", "max_burst", "message"),
    [
        (24, 4, r"^bus_bytes must be a power of two from 1 to 128, not 24$"),
        (16, 512, r"^max_burst must be a power of two from 1 to 256, not 512$"),
        (64, 128, r"^max_burst of 128 words of 64 bytes is longer than 4096 bytes$"),
    ],
)
def test_refused_parameters(bus_bytes, max_burst, message):
    with pytest.raises(ValueError, match=message):
        BurstSplitter(word_width=20, count_width=8, bus_bytes=bus_bytes, max_burst=max_burst)
