"""Rate and latency of the burst splitter and the beat sequencer. Proofs show the bursts (tests/formal/bus)."""

import pytest

from support.streams import transact
from tilewright.hw.bus.bursts import BeatSequencer, BurstSplitter


def test_splitter_rate():
    dut = BurstSplitter(word_width=20, count_width=11, bus_bytes=16, max_burst=4, tag=3)
    ranges = [(253, 9), (0, 1), (2, 4), (1, 5), (255, 2), (7, 1)]
    bursts = [(253, 3), (256, 4), (260, 2), (0, 1), (2, 4), (1, 4), (5, 1), (255, 1), (256, 1), (7, 1)]
    items = [{"word": word, "beyond": count - 1, "tag": n} for n, (word, count) in enumerate(ranges)]
    payloads, cycles = transact(dut, {"i": items}, {"o": len(bursts)})
    assert [(payload.word, payload.beats_minus_one + 1) for payload in payloads["o"]] == bursts
    assert cycles["o"] == list(range(1, 1 + len(bursts)))
    assert [payload.tag for payload in payloads["o"]] == [0, 0, 0, 1, 2, 3, 3, 4, 4, 5]


def test_sequencer_rate():
    dut, counts = BeatSequencer(3, 4), [1, 1, 2, 3, 256, 1, 2]
    items = [{"beats_minus_one": count - 1, "tag": tag} for tag, count in enumerate(counts)]
    payloads, cycles = transact(dut, {"bursts": items}, {"beats": sum(counts)})
    assert cycles["beats"] == list(range(1, 1 + sum(counts)))
    assert [(beat.tag, beat.last) for beat in payloads["beats"]] == [
        (tag, beat == count - 1) for tag, count in enumerate(counts) for beat in range(count)
    ]


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
