"""Elaboration in less time: the same netlist, and Amaranth as it was behind it."""

import gc

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, Signal, Value, signed
from amaranth.hdl._ast import Operator

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import PixelWalker
from tilewright.sim.hdl.elaboration import quick_elaboration


def test_the_netlist_is_the_same():
    def netlist():
        walker = PixelWalker(TMAU_PRESETS["unit"])
        return rtlil.convert(walker, ports=[Value.cast(value) for _, _, value in walker.signature.flatten(walker)])

    before = netlist()
    with quick_elaboration():
        assert netlist() == before


def test_it_may_be_entered_again_and_leaves_nothing():
    shape, enabled, kinds = Operator.shape, gc.isenabled(), [type(kind) for kind in (Value, Operator, Const, Signal)]
    with quick_elaboration():
        with quick_elaboration():
            pass
        assert not gc.isenabled()
        assert Operator.shape is not shape
    assert Operator.shape is shape
    assert [type(kind) for kind in (Value, Operator, Const, Signal)] == kinds
    assert gc.isenabled() == enabled
    with pytest.raises(ValueError, match=r"^inside$"), quick_elaboration():
        raise ValueError("inside")
    assert Operator.shape is shape
    assert [type(kind) for kind in (Value, Operator, Const, Signal)] == kinds
    assert gc.isenabled() == enabled


def test_kinds_of_values_are_told_apart():
    signal = Signal(4)
    with quick_elaboration():
        assert isinstance(signal, Signal)
        assert isinstance(signal, Value)
        assert isinstance(signal + 1, Operator)
        assert not isinstance(signal, Operator)
        assert not isinstance(3, Value | Signal | Const)


def test_a_shape_is_worked_out_once():
    with quick_elaboration():
        total = Signal(signed(4)) + Const(3, 7)
        assert total.shape() == signed(9)
        assert total.shape() is total.shape()
        assert total[2:].shape().width == 7
