"""Amaranth's simulator in Python, in less time."""

from functools import partial

from amaranth.hdl import ShapeCastable, Signal, Value
from amaranth.hdl._ast import Slice
from amaranth.sim._async import ChangedTrigger, SampleTrigger
from amaranth.sim.pysim import PySimEngine

from .code import quick_code

__all__ = ["QuickEngine"]


class QuickEngine(PySimEngine):
    """The same simulation as Amaranth's, of less code, and with a shorter way to what testbenches sample."""

    def __init__(self, design):
        #: By the ``id`` of the signal, which its state keeps.
        self._states = {}
        with quick_code():
            super().__init__(design)

    def get_value(self, expr):
        return self._reader(expr)()

    def add_trigger_combination(self, combination, *, oneshot):
        trigger = super().add_trigger_combination(combination, oneshot=oneshot)
        readers = [self._result(trigger, part) for part in combination._triggers]

        def compute_result():
            trigger._result = tuple([read() for read in readers])

        trigger.compute_result = compute_result
        return trigger

    def _result(self, trigger, part):
        """A function that tells what a trigger tells of one of its parts."""
        if not isinstance(part, SampleTrigger | ChangedTrigger):
            return partial(trigger._triggers_hit.__contains__, part)
        read, shape = self._reader(Value.cast(part.value)), part.shape
        return (lambda: shape.from_bits(read())) if isinstance(shape, ShapeCastable) else read

    def _reader(self, value):
        """A function that tells the value now."""
        if type(value) is Signal:
            state = self._state_of(value)
            return lambda: state.curr
        if type(value) is Slice and type(value.value) is Signal:
            state, start, mask = self._state_of(value.value), value.start, (1 << len(value)) - 1
            return lambda: state.curr >> start & mask
        return partial(super().get_value, value)

    def _state_of(self, signal):
        found = self._states.get(id(signal))
        if found is None:
            found = self._states[id(signal)] = self.state.slots[self.state.get_signal(signal)]
        return found
