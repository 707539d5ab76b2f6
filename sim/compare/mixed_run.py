"""Mixed batches on hardware and golden: both memories, error records, barriers, and the rules of the bus."""

from collections import Counter
from dataclasses import replace

from tilewright.golden.spec import Opcode

from .differences import bus_differences, ending_differences, memory_differences
from .mixed_golden import BATCH_BYTES, run_golden
from .order import order_differences
from .order_case import order_case
from .shrink import smallest

__all__ = ["MixedRun"]

#: Cycles after which the barrier unit has written back what it holds.
_DRAIN = 32


class MixedRun:
    """Runs mixed batches on a session, whose memories it fills anew for each.

    Parameters
    ----------
    session : TmauSession

    Attributes
    ----------
    commands : int
        Compared so far.
    endings : Counter
        How they ended.
    golden : MixedGolden
        What the last batch does on golden.
    """

    def __init__(self, session):
        self._session = session
        self._params = session.params
        self.commands = 0
        self.endings = Counter()
        self.golden = None

    def run(self, batch):
        """Runs a batch from a reset on; returns one sentence for each difference from golden."""
        session = self._session
        session.clear(batch.base)
        batch.configure(session)
        self.golden = golden = run_golden(batch, self._params)
        session.global_memory.write(batch.base, golden.contents)
        session.shared_memory.write(0, golden.shared)
        run = session.run(
            [command | {"wait": batch.wait} for command in golden.commands],
            registers=self._window_registers(golden),
            after={"commands": ["registers"]},
            shared=True,
            memory=(batch.base, BATCH_BYTES),
            drain=_DRAIN,
        )
        self.commands += len(golden.commands)
        self.endings.update(golden.endings)
        machine = golden.machine
        return [
            *bus_differences(run),
            *ending_differences(run, machine),
            *order_differences(golden.commands, run.commands),
            *memory_differences("shared memory", run.shared, machine.smem, golden.shared),
            *memory_differences("global memory", run.memory, machine.gmem.data, golden.contents),
        ]

    def _window_registers(self, golden):
        """What sets the windows of a batch, and of each processor."""
        if not self._params.has("windows"):
            return []
        apart = enumerate(golden.machine.processors)
        own = [item for number, windows in apart for item in windows.registers(number).items()]
        return [*golden.windows.registers().items(), *own]

    def reduce(self, batch):
        """The smallest part of a failing batch that fails by itself, or None. The ends of epochs between it stay."""
        ends = {number for number, order in enumerate(batch.orders) if order.fields["opcode"] == Opcode.WAIT_ALL}

        def part(numbers):
            """With one end between two commands that had one or more."""
            kept = []
            for last, number in zip((numbers[0], *numbers), numbers, strict=False):
                kept += [end for end in sorted(ends) if last < end < number][:1] + [number]
            return replace(batch, orders=tuple(batch.orders[number] for number in kept))

        others = tuple(number for number in range(len(batch.orders)) if number not in ends)
        numbers = smallest(others, lambda numbers: self.run(part(numbers)))
        return None if numbers is None else part(numbers)

    def report(self, batch):
        """What failed in a batch: the differences of its smallest part, and a replay case of it."""
        where = f"{batch}; {self._params}"
        part = self.reduce(batch)
        if part is None:
            return f"{where}: does not fail again"
        orders = [str(order) for order in part.orders]
        return "\n".join([where, *self.run(part), *orders, order_case("found_by_mixed", where, part, self._params)])
