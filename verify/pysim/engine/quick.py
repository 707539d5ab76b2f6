"""Amaranth's simulator in Python, in less time."""

from functools import partial

from amaranth.hdl import ShapeCastable, Signal, Value
from amaranth.hdl._ast import Concat, Slice
from amaranth.sim._async import ChangedTrigger, EdgeTrigger, SampleTrigger, TestbenchContext
from amaranth.sim.pysim import PySimEngine

from .code import quick_code
from .pieces import PieceCompiler, in_order
from .slots import Slots

__all__ = ["QuickEngine"]


class QuickEngine(PySimEngine):
    """The same simulation as Amaranth's, of less code, with a shorter way to what testbenches sample.

    What is combinational is evaluated in order, so that each piece runs once for all inputs that changed, and what
    testbenches set takes effect when somebody looks: at a value, at a clock's edge. Where one waits for changes of
    signals, it takes effect at once, as in Amaranth's.
    """

    def __init__(self, design):
        # Instead of that of the base class, which compiles the design.
        self._design, self._state = design, Slots()
        self._testbenches, self._vcd_writers, self._active_triggers = [], [], set()
        self._delta_cycles = 0
        #: By the ``id`` of the signal, which its state keeps.
        self._states = {}
        self._clocks, self._is_watched = set(), False
        compiler = PieceCompiler(self._state)
        with quick_code():
            compiler(design.fragment)
        #: But for those of clocked registers: clocks, and what is added.
        self._processes = set()
        pieces = in_order(compiler.pieces)
        self._runs = [piece.run for piece in pieces]
        self._state.find_readers([piece.reads for piece in pieces])

    def advance(self):
        self._settle(True)
        ran = True
        while ran:
            ran = False
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable, ran = False, True
                    testbench.run()
            self._settle(False)
        if self._vcd_writers:
            self._show()
        self._state.timeline.advance()
        return any(testbench.critical for testbench in self._testbenches)

    def step_design(self):
        """Comes after each value that a testbench sets."""
        if self._is_watched or self._state.urgent:
            self._state.urgent = False
            self._settle(False)

    def _settle(self, wakes):
        """Evaluates until nothing changes; ``wakes`` tells whether processes may have woken since the last time."""
        state, active, runs = self._state, self._active_triggers, self._runs
        while True:
            if wakes or active:
                for trigger in active:
                    trigger.run()
                active.clear()
                edges, state.ready = state.ready, []
                for process in edges:
                    process.run()
                for process in self._processes:
                    if process.runnable:
                        process.runnable = False
                        process.run()
            if state.pending:
                state.commit()
            wakes, state.woken = state.woken, False
            if wakes:
                continue  # registers take what was there before the edge
            while dirty := state.dirty:
                first = dirty & -dirty
                state.dirty = dirty ^ first
                runs[first.bit_length() - 1]()
            wakes, state.woken = state.woken, False
            if not wakes and not state.pending:
                break

    def get_value(self, expr):
        if self._state.pending:
            self._settle(False)
        return self._value(Value.cast(expr))

    def set_value(self, expr, value):
        self._assign(Value.cast(expr), value)

    def _assign(self, target, value):
        kind = type(target)
        if kind is Concat:
            for part in target.parts:
                self._assign(part, value)
                value >>= len(part)
            return
        signal = target.value if kind is Slice else target
        state = self._state_of(signal) if type(signal) is Signal else None
        if state is None or state.is_comb:
            super().set_value(target, value)  # also where it must not be set
            self._state.urgent = True
        elif kind is Slice:
            state.assign(value << target.start, (1 << target.stop) - (1 << target.start))
        else:
            state.assign(value, state.mask)

    def _value(self, value):
        kind = type(value)
        if kind is Signal:
            return self._state_of(value).curr
        if kind is Slice:
            return self._value(value.value) >> value.start & (1 << value.stop - value.start) - 1
        if kind is Concat:
            bits = offset = 0
            for part in value.parts:
                bits |= (self._value(part) & (1 << len(part)) - 1) << offset
                offset += len(part)
            return bits
        return super().get_value(value)

    def add_clock_process(self, clock, **options):
        super().add_clock_process(clock, **options)
        self._clocks.add(id(clock))

    def add_async_testbench(self, simulator, process, *, background):
        super().add_async_testbench(simulator, process, background=background)
        # It is the testbench's own already, which has been called with it.
        self._testbenches[-1].context.__class__ = _Context

    def add_trigger_combination(self, combination, *, oneshot):
        if any(self._watches(part) for part in combination._triggers) and not self._is_watched:
            self._settle(False)
            self._is_watched = True
        trigger = super().add_trigger_combination(combination, oneshot=oneshot)
        readers = [self._result(trigger, part) for part in combination._triggers]

        def compute_result():
            trigger._result = tuple([read() for read in readers])

        trigger.compute_result = compute_result
        return trigger

    def _watches(self, part):
        if isinstance(part, EdgeTrigger):
            return id(part.signal) not in self._clocks
        return isinstance(part, ChangedTrigger)

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
        if type(value) is Concat:
            parts, offset = [], 0
            for part in value.parts:
                parts.append((self._reader(part), (1 << len(part)) - 1, offset))
                offset += len(part)
            return lambda: sum([(read() & mask) << offset for read, mask, offset in parts])
        return partial(self._value, value)

    def _state_of(self, signal):
        found = self._states.get(id(signal))
        if found is None:
            found = self._states[id(signal)] = self.state.slots[self.state.get_signal(signal)]
        return found

    def _show(self):
        """Tells waveforms what has changed since the last time."""
        for state, addresses in self._state.changes():
            for writer in self._vcd_writers:
                if addresses is None:
                    writer.update_signal(self.now, state.signal)
                for address in addresses or ():
                    writer.update_memory(self.now, state.memory, address)


class _Context(TestbenchContext):
    def set(self, expr, value):
        if isinstance(expr, Value) and type(value) in (int, bool):
            self._engine.set_value(expr, value)  # no constant is made of what is a number
            self._engine.step_design()
        else:
            super().set(expr, value)
