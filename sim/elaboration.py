"""Amaranth without what takes most of the time of an elaboration."""

import gc
from contextlib import ExitStack, contextmanager

from amaranth.hdl import _ast, _nir

__all__ = ["quick_elaboration"]

#: Values whose shape is worked out from their parts, and anew whenever it is asked for.
_DERIVED = (_ast.Operator, _ast.Slice, _ast.Part, _ast.Concat, _ast.SwitchValue, _ast.Signal)


@contextmanager
def quick_elaboration():
    """Elaborates, and makes simulators of Python, in less than half of the time. May be entered again inside.

    Values never change, so each works out its shape once. Amaranth makes millions of objects, and all of them stay:
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
        before.callback(setattr, _nir.Value, "__new__", _nir.Value.__new__)
        _nir.Value.__new__ = _unchecked
        yield


def _once(shape):
    def known(self):
        found = self.__dict__.get("known_shape")
        if found is None:
            found = self.__dict__["known_shape"] = shape(self)
        return found

    return known


def _unchecked(cls, nets=()):
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)
