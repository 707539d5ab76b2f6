"""Amaranth without what takes most of the time of an elaboration."""

import gc
from abc import ABCMeta
from contextlib import ExitStack, contextmanager

from amaranth.hdl import _ast, _nir

__all__ = ["quick_elaboration"]

#: Values whose shape is worked out from their parts, and anew whenever it is asked for.
_DERIVED = (_ast.Operator, _ast.Slice, _ast.Part, _ast.Concat, _ast.SwitchValue, _ast.Signal)


@contextmanager
def quick_elaboration():
    """Elaborates, and makes simulators of Python, in less than half of the time. May be entered again inside.

    Values never change, so each works out its shape once. Of their classes nobody registers another, so that one look
    at the class of an object tells whether it is one. Amaranth makes millions of objects, and all of them stay:
    looking for garbage would take half of what is left of an elaboration, and a third its assertion that each bit
    which it hands to itself is one.
    """
    with ExitStack() as before:
        if gc.isenabled():
            gc.disable()
            before.callback(gc.enable)
        for kind in _DERIVED:
            before.callback(setattr, kind, "shape", kind.shape)
            kind.shape = _once(kind.shape)
        for kind in _and_below(_ast.Value):
            if type(kind) is ABCMeta:
                before.callback(setattr, kind, "__class__", ABCMeta)
                kind.__class__ = _Plain
        for kind in (_ast._ConstMeta, _ast._SignalMeta):
            before.callback(setattr, kind, "__instancecheck__", kind.__instancecheck__)
            kind.__instancecheck__ = _Plain.__instancecheck__
        before.callback(setattr, _nir.Value, "__new__", _nir.Value.__new__)
        _nir.Value.__new__ = _unchecked
        yield


class _Plain(ABCMeta):
    __instancecheck__ = type.__instancecheck__


def _and_below(kind):
    yield kind
    for below in kind.__subclasses__():
        yield from _and_below(below)


def _once(shape):
    def known(self):
        found = self.__dict__.get("known_shape")
        if found is None:
            found = self.__dict__["known_shape"] = shape(self)
        return found

    return known


def _unchecked(cls, nets=()):
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)
