"""The values of a simulated design, which know who reads them."""

from amaranth.sim import pysim

__all__ = ["Slots"]


class Slots(pysim._PyEngineState):
    """The state of a simulation in Python.

    Attributes
    ----------
    dirty : int
        A one for each piece of which an input has changed since it ran last.
    woken : bool
        Whether something has changed that a process or a testbench waits for.
    urgent : bool
        Whether somebody waits for what was set.
    ready : list
        Processes of clocks that have had their edge.
    """

    def __init__(self):
        super().__init__()
        self.dirty, self.woken, self.urgent, self.ready = 0, False, False, []
        self._all, self._numbers = 0, {}

    def find_readers(self, reads):
        """Given the slots that each piece reads, all of which are to run first."""
        for number, slots in enumerate(reads):
            for slot in slots:
                self.slots[slot].readers |= 1 << number
        self._all = self.dirty = (1 << len(reads)) - 1

    def reset(self):
        super().reset()
        self.dirty, self.woken, self.urgent, self.ready = self._all, False, False, []

    def get_signal(self, signal):
        found = self._numbers.get(signal.duid)
        if found is None:
            found = self._numbers[signal.duid] = len(self.slots)
            self.slots.append(_Signal(signal, self))
        return found

    def add_signal_waker(self, signal, waker):
        """A function, or a process and the value of the signal that starts it."""
        if type(waker) is tuple:
            process, polarity = waker
            state = self.slots[self.get_signal(signal)]
            state.edges = state.edges or ([], [])
            state.edges[polarity].append(process)
        else:
            super().add_signal_waker(signal, waker)

    def get_memory(self, memory):
        found = self.memories.get(memory)
        if found is None:
            found = self.memories[memory] = len(self.slots)
            self.slots.append(_Memory(memory, self))
        return found

    def changes(self):
        """What differs from what it was at the last call, or at the beginning: a state, and addresses in a memory."""
        for state in self.slots:
            if isinstance(state, _Memory):
                addresses = [address for address, value in enumerate(state.data) if value != state.shown[address]]
                if addresses:
                    state.shown = list(state.data)
                    yield state, addresses
            elif state.curr != state.shown:
                state.shown = state.curr
                yield state, None


class _Signal(pysim._PySignalState):
    __slots__ = ("edges", "mask", "readers", "shown", "sign", "state")

    def __init__(self, signal, state):
        self.state, self.readers, self.edges = state, 0, None
        self.mask = (1 << len(signal)) - 1
        self.sign = 1 << len(signal) >> 1 if signal.shape().signed else 0
        super().__init__(signal, state.pending)

    def reset(self):
        super().reset()
        self.shown = self.curr

    def drive(self, value):
        """Takes what a piece has worked out, which differs: those behind find it at once."""
        if self.wakers or self.edges:
            self._wake(value)
        self.curr = self.next = +value  # a number also where it is the result of a comparison
        self.state.dirty |= self.readers

    def commit(self):
        if self.curr == self.next:
            return False
        if self.wakers or self.edges:
            self._wake(self.next)
        self.curr = self.next
        self.state.dirty |= self.readers
        return True

    def _wake(self, value):
        pysim._run_wakers(self.wakers, self.curr, value)
        if self.edges:
            self.state.ready += self.edges[value]
        self.state.woken = True

    def assign(self, bits, mask):
        """Gives the bits of the mask other values at the next commit."""
        bits = self.next & self.mask & ~mask | bits & mask
        bits = (bits ^ self.sign) - self.sign
        if bits != self.next:
            self.next = bits
            self.pending.add(self)
            if self.wakers or self.edges:
                self.state.urgent = True


class _Memory(pysim._PyMemoryState):
    __slots__ = ("readers", "shown", "state")

    def __init__(self, memory, state):
        self.state, self.readers = state, 0
        super().__init__(memory, state.pending)

    def reset(self):
        super().reset()
        self.shown = list(self.data)

    def commit(self):
        changed = super().commit()
        if changed:
            self.state.dirty |= self.readers
        return changed
