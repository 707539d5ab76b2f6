"""A session and golden side by side: the same memories, the same commands, and every difference between them."""

from typing import NamedTuple

import numpy as np

from tilewright.golden import Machine, Memory, Windows, command_word
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.sim.session.golden_options import machine_options
from tilewright.sim.session.run import Run
from tilewright.spec import DESCRIPTOR

from ..random.commands import GOOD, SPARE, TILE, WAITING
from .differences import bus_differences, ending_differences, memory_differences, record_differences, unequal

__all__ = ["AREA", "Comparison", "FaultyMemory", "Scoreboard", "refusal_differences"]

#: Bytes of global memory, from address 0 on, that commands may move; they are compared after each run.
AREA = 1 << 14

_GMEM_SEED, _SMEM_SEED = 3, 4
_TRANSACTIONS = 1 << 19  # more than any run lands
#: Cycles after which the barrier unit has written back what it holds.
_DRAIN = 32
_RECORD = ("error", "error_address_lo", "error_address_hi", "error_count", "irq_status")
_PROBES = ("load", "store", "reduce", "copy SG")
_ERROR = 0b01  # bit of irq_status and irq_enable
_TAG = 0xA5C3  # odd
_CLEAR_ERROR = 0b100  # bit of control


class FaultyMemory(Memory):
    """Memory in which the bytes of some words answer with an error.

    Parameters
    ----------
    data
        See :class:`Memory`.
    faults : (int, int) or None
        First and last address of the words; also an attribute.
    """

    def __init__(self, data, faults=None):
        super().__init__(data)
        self.faults = faults

    def holds(self, addresses, count):
        """Whether ``count`` bytes from each of ``addresses`` on can be accessed."""
        held = super().holds(addresses, count)
        if self.faults is None:
            return held
        first, last = self.faults
        addresses = np.atleast_1d(np.asarray(addresses, np.uint64))
        return held & ((addresses > np.uint64(last)) | (addresses + np.uint64(count) <= np.uint64(first)))


class Comparison(NamedTuple):
    """Commands that both have run.

    Attributes
    ----------
    run : Run
        Of the session.
    errors : list of ErrorRecord
        Of golden.
    differences : list of str
        One sentence for each.
    """

    run: Run
    errors: list
    differences: list


class Scoreboard:
    """Runs commands on a session and on golden, whose memories begin equal and must stay so.

    Parameters
    ----------
    session : Session
        Of a core with an access unit alone.

    Attributes
    ----------
    machine : Machine
    params : TmauParams
    shared, memory : uint8 array
        Shared memory, and the first ``AREA`` bytes of global memory, before the last run.
    """

    def __init__(self, session):
        self.session, self.params = session, session.params.tmau
        self._contents = np.zeros(len(session.global_memory), np.uint8)
        self._issued = 0  # commands since the beginning

    def begin(self, *, windows=None, faults=None, response=0, errors_on="both"):
        """Resets the hardware, and fills all memories.

        Parameters
        ----------
        windows : Windows or None
            Set in the registers.
        faults : (int, int) or None
            First and last address of words that the bus answers with ``response``.
        errors_on : str
            See ``Session.configure``.
        """
        session = self.session
        self._contents[:AREA] = mix_pattern(AREA, _GMEM_SEED)
        shared = mix_pattern(self.params.smem.size_bytes, _SMEM_SEED)
        spare = np.frombuffer(TILE.to_bytes(DESCRIPTOR.bytes, "little"), np.uint8)
        self._contents[SPARE : SPARE + DESCRIPTOR.bytes] = spare
        Barrier(pending=1, expected=1, transactions=_TRANSACTIONS).write(shared, WAITING)
        session.reset()
        session.configure(errors=(*(faults or (0, 0)), response if faults else 0), errors_on=errors_on)
        session.global_memory.write(0, self._contents[:AREA])
        session.shared_memory.write(0, shared)
        self.machine = Machine(
            FaultyMemory(self._contents, faults), shared, windows=windows, **machine_options(self.params)
        )
        self._issued = 0
        confining = (windows or Windows()).registers().items() if self.params.has("windows") else ()
        session.run(registers=[*confining, ("irq_enable", _ERROR)])

    def heal(self):
        """Words no longer answer with an error."""
        self.machine.gmem.faults = None
        self.session.configure(errors=(0, 0, 0))

    def clear_errors(self):
        """Forgets the error record, its count and the interrupt."""
        self.machine.errors.clear()
        self.session.run(registers=[("control", _CLEAR_ERROR), ("irq_status", _ERROR)])

    def interrupt(self, command, cycle):
        """Resets the hardware ``cycle`` cycles after a command was issued; golden goes on from the state that it left.

        Returns how many bytes of both memories are neither as before the command nor as after it.
        """
        machine, memory = self.machine, self._contents[:AREA]
        before = machine.smem.copy(), memory.copy()
        self.session.run([command], limit=cycle)
        self.session.reset()
        run = self.session.run(shared=True, memory=(0, AREA))
        machine.execute(command_word(**command))
        torn = 0
        for old, new, seen in zip(before, (machine.smem, memory), (run.shared, run.memory), strict=True):
            torn += int(((seen != old) & (seen != new)).sum())
            new[:] = seen
        machine.errors.clear()
        return torn

    def poke(self, address, values):
        """Puts bytes into both global memories; below ``AREA``, they last until the next beginning."""
        self._contents[address : address + len(values)] = np.frombuffer(bytes(values), np.uint8)
        self.session.global_memory.write(address, bytes(values))

    def descriptor(self, word):
        """Address of a descriptor (an int), after ``AREA`` in both global memories."""
        address = self.session.descriptor(word)
        self._contents[address : address + DESCRIPTOR.bytes] = np.frombuffer(
            word.to_bytes(DESCRIPTOR.bytes, "little"), np.uint8
        )
        return address

    def command(self, kind, *, skew=0, **changes):
        """The good command of a kind with some fields changed.

        Parameters
        ----------
        kind : str
            Of :data:`~tilewright.verify.random.commands.GOOD`.
        skew : int
            Added to the address of the descriptor.
        **changes
            ``word``, the descriptor as an int, and fields; a function gets the size of shared memory.
        """
        fields = GOOD[kind] | changes
        if "word" in fields:
            fields = {"descriptor": self.descriptor(fields.pop("word"))} | fields
        if "descriptor" in fields:
            fields["descriptor"] += skew
        return {
            name: value(self.params.smem.size_bytes) if callable(value) else value for name, value in fields.items()
        }

    def works(self):
        """Differences of a few good commands."""
        result = self.run([self.command(kind) for kind in _PROBES])
        return [*result.differences, *(f"a good command is refused: {error}" for error in result.errors)]

    def run(self, commands, *, barriers=(), wait=True, **options):
        """Runs commands, and then operations on barriers, on both.

        Parameters
        ----------
        commands : list of dict
        barriers : sequence of (BarrierOp, int, int)
        wait : bool
            Each command waits for those before, so that errors come in the order of the commands.
        **options
            See ``Session.run``.

        Returns
        -------
        Comparison
        """
        machine = self.machine
        before = len(machine.errors)
        self.shared, self.memory = machine.smem.copy(), self._contents[:AREA].copy()
        # Tags differ, also from tags of earlier runs, and all of their bits are used.
        tags = [_TAG * (self._issued + number) % (1 << 16) for number in range(1, len(commands) + 1)]
        self._issued += len(commands)
        commands = [command | {"tag": tag} for command, tag in zip(commands, tags, strict=True)]
        for command in commands:
            machine.execute(command_word(**command))
        for operation in barriers:
            machine.barrier(*operation)
        run = self.session.run(
            [command | {"wait": wait} for command in commands],
            barriers=barriers,
            registers=[(name,) for name in _RECORD],
            after={"barriers": ["commands"], "registers": ["commands", "barriers"]},
            shared=True,
            memory=(0, AREA),
            drain=_DRAIN,
            **options,
        )
        differences = [
            *bus_differences(run),
            *ending_differences(run, machine),
            *memory_differences("shared memory", run.shared, machine.smem, self.shared, machine.open_bytes),
            *memory_differences(
                "global memory", run.memory, self._contents[:AREA], self.memory, machine.gmem.open_bytes
            ),
            *_record_differences(run, machine.errors, None if before or wait else machine.errors),
        ]
        return Comparison(run, machine.errors[before:], differences)


def refusal_differences(scoreboard, code, command):
    """Runs a command that must be refused, and good ones after it; returns one sentence for each difference.

    Nothing may move: no byte, no barrier, no request of data. Only the descriptor is read.
    """
    result = scoreboard.run([command])
    run = result.run
    moved = run.data_requests + run.reducer_requests + run.write_requests
    return [
        *result.differences,
        *unequal(
            {
                "the list of golden's codes": ([error.code for error in result.errors], [code]),
                "the number of requests of data": (moved, 0),
                "a change of shared memory": ((run.shared != scoreboard.shared).any(), False),
                "a change of global memory": ((run.memory != scoreboard.memory).any(), False),
                "the list of phases that completed": (run.flips, []),
            }
        ),
        *scoreboard.works(),
    ]


def _record_differences(run, errors, first=None):
    """All errors since the clear are counted, and raise the interrupt; the record is the first, or one of ``first``."""
    *record, count, status = (answer.data for answer in run.registers[-len(_RECORD) :])
    return [
        *record_differences(record, first or errors[:1]),
        *unequal(
            {
                "error_count": (count, len(errors)),
                "irq_status.error": (status & _ERROR, bool(errors)),
                "irq": (run.irq, bool(errors)),
            }
        ),
    ]
