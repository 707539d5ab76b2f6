"""The prover itself: true is proved, false is found and placed, with SymbiYosys and where it can without."""

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal
from amaranth.lib import stream

from tilewright import results
from tilewright.verify import formal
from tilewright.verify.formal import FOLDER, StreamRules, prove


class CounterSpec(Elaboratable):
    """A counter that stops at nine, said to stay at or below ``limit``; ``goal`` is to be reached."""

    def __init__(self, *, limit, goal):
        self.enable = Signal()
        self._limit = limit
        self._goal = goal

    def elaborate(self, platform):
        m = Module()
        count = Signal(4)
        with m.If(self.enable & (count < 9)):
            m.d.sync += count.eq(count + 1)
        m.d.comb += Assert(count <= self._limit)
        m.d.comb += Cover(count == self._goal)
        return m


class SourceSpec(Elaboratable):
    """A source that keeps the stream rules or, if ``rude``, forgets its payload."""

    def __init__(self, *, rude):
        self.port = stream.Signature(4).create()
        self._rude = rude

    def elaborate(self, platform):
        m = Module()
        m.submodules.rules = StreamRules(self.port)
        with m.If(~self.port.valid | self.port.ready | self._rude):
            m.d.sync += self.port.valid.eq(1)
            m.d.sync += self.port.payload.eq(self.port.payload + 1)
        return m


@pytest.mark.parametrize("mode", ["prove", "bmc", "cover"])
def test_true_holds(mode):
    spec = CounterSpec(limit=9, goal=9)
    prove(spec, [spec.enable], name=f"sim-true-{mode}", mode=mode, depth=12)
    assert not (FOLDER / f"sim-true-{mode}" / "run").exists(), "SymbiYosys has been asked"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["prove", "bmc", "cover"])
def test_symbiyosys_agrees(mode, monkeypatch):
    monkeypatch.setattr(formal, "_is_shown", lambda *arguments: False)
    spec = CounterSpec(limit=9, goal=9)
    prove(spec, [spec.enable], name=f"sim-asked-{mode}", mode=mode, depth=12)
    assert "DONE (PASS" in (FOLDER / f"sim-asked-{mode}" / "run" / "logfile.txt").read_text()


@pytest.mark.parametrize("mode", ["prove", "bmc"])
def test_false_is_found_and_placed(mode):
    spec = CounterSpec(limit=7, goal=9)
    with pytest.raises(AssertionError, match=r"Assert failed in top: .*test_formal\.py:\d+"):
        prove(spec, [spec.enable], name=f"sim-false-{mode}", mode=mode, depth=12)


def test_what_cannot_be_reached_is_found():
    spec = CounterSpec(limit=9, goal=10)
    with pytest.raises(AssertionError, match=r"Unreached cover statement at top: .*test_formal\.py:\d+"):
        prove(spec, [spec.enable], name="sim-unreached", mode="cover", depth=12)


def test_stream_rules():
    spec = SourceSpec(rude=0)
    prove(spec, [spec.port.ready], name="sim-polite", depth=2)
    spec = SourceSpec(rude=1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec, [spec.port.ready], name="sim-rude", depth=2)


def test_what_is_proved_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    spec = CounterSpec(limit=9, goal=9)
    prove(spec, [spec.enable], name="sim-recorded", depth=12, proves="F1 F6")
    assert {figures["property"] for figures in results.load("proof-*-sim-recorded")} == {"F1", "F6"}
    with pytest.raises(ValueError, match=r"^what is to hold for ever must be proved in mode prove, not bmc$"):
        prove(spec, [spec.enable], name="sim-bounded", mode="bmc", depth=12, proves="F1")


def test_unknown_mode():
    with pytest.raises(ValueError, match=r"^mode must be one of prove, bmc, cover, not 'live'$"):
        prove(None, [], name="sim-mode", mode="live", depth=1)
