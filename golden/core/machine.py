"""A core without cycles, which executes programs word by word (docs/core.md)."""

import itertools
from contextlib import suppress
from typing import NamedTuple

from tilewright.spec import BARRIER, BarrierOp, Error
from tilewright.spec.conv import JOB, ConvError
from tilewright.spec.core import JOB_WORDS, PROGRAM_WORDS, WORD_BITS, WORD_BYTES, WRITABLE, Engine, Kind, ProgramError
from tilewright.spec.pe import PAGE_ENTRY, Operation, Put
from tilewright.spec.tmau import COMMAND
from tilewright.spec.tmau_registers import FEATURES

from ..arguments import instance, integer, shown
from ..conv.machine import Conv
from ..pe.checks import instruction_word
from ..pe.machine import BarrierNotCompleteError, Pe
from ..pe.segment import PageNotLoadedError
from ..smem import Barrier
from ..tmau.checks import Windows
from ..tmau.machine import ErrorRecord, Machine
from .processor import INSTRUCTION_BYTES, Loops, PutRegisters, check_range, check_word, kind_of

__all__ = ["Core", "DeadlockError", "ProgramRecord", "Step"]

_COMMAND_BITS = (1 << PROGRAM_WORDS[Kind.END]["kind"].lsb) - 1
_PER_WORD = WORD_BYTES // INSTRUCTION_BYTES
_PAGER_TAG = 0x8000
_TAG = COMMAND["tag"]


class DeadlockError(RuntimeError):
    """A wait without end in a program without a watchdog."""


class ProgramRecord(NamedTuple):
    """An error record (docs/core.md, "Errors") as in the registers; ``word`` is an index."""

    code: ProgramError
    engine: Engine
    tag: int
    word: int


class Step(NamedTuple):
    """The next word to execute: its index, its kind (None if unknown), and the packed word."""

    index: int
    kind: Kind
    word: int


def _tag_of(word):
    return word >> _TAG.lsb & (1 << _TAG.width) - 1


class _StopError(Exception):
    """The program stops; its argument is the record."""


class Core:
    """A core; its engines complete work at once or wait at a barrier.

    Parameters
    ----------
    gmem : Memory
        Global memory; accesses outside it get error responses of the bus.
    smem : uint8 array
        Shared memory of all engines, changed in place.
    pe : PeSizes, or anything with its attributes
        Of the processing engine.
    conv : ConvParams or None
        Of the convolution engine, if there is one.
    bus_bytes, addr_width, windows, features
        As in ``Machine``.
    program_window : (int, int) or None
        First and last byte that programs and instructions may have, in whole pages as in ``Windows``; None: no limit.
    watchdog : bool
        Whether a wait without end stops the program; otherwise it raises :class:`DeadlockError`.
    tmau : Machine or None
        The access unit of a core of a ``Cluster``, with its memories and options; None: a new one.
    number : int
        Of the core in a cluster.

    Attributes
    ----------
    tmau : Machine
    pe : Pe
    conv : Conv or None
    record : ProgramRecord or None
        The error that stopped the last program; None if it reached its end.
    interrupts : int
        Interrupts at the ends of programs.
    """

    def __init__(self, gmem, smem, *, pe=None, conv=None, bus_bytes=64, addr_width=64, windows=None,
                 features=tuple(FEATURES), program_window=None, watchdog=False, tmau=None, number=0):  # fmt: skip
        self.tmau = (
            instance("tmau", tmau, Machine)
            if tmau is not None
            else Machine(gmem, smem, bus_bytes, addr_width, windows, features)
        )
        self.pe = Pe(smem, pe, number, self.tmau.open_bytes)
        self.conv = None if conv is None else Conv(smem, conv, self.tmau.open_bytes)
        if not isinstance(watchdog, bool):
            raise TypeError(f"watchdog must be True or False, not {shown(watchdog)}")
        self.watchdog = watchdog
        self._window = Windows(program_window)
        self._put_registers = PutRegisters(self.pe.sizes)
        self._waiting = None  # instruction that waits in the processing engine
        self.record = None
        self.interrupts = 0

    @property
    def gmem(self):
        """Global memory."""
        return self.tmau.gmem

    @property
    def smem(self):
        """Shared memory."""
        return self.tmau.smem

    def run(self, address, words, limit=None):
        """Runs the ``words`` words at ``address``; returns the :class:`ProgramRecord`, or None if they reach their end.

        It clears the error records of engines first. The host stops the program after ``limit`` words, if given.
        Raises :class:`DeadlockError`.
        """
        for _ in self.steps(address, words, limit):
            pass
        return self.record

    def steps(self, address, words, limit=None):
        """The same word by word: yields each :class:`Step` before its execution and sets ``record`` at the end."""
        turns, waits = self.turns(address, words, limit), None
        with suppress(StopIteration):
            while True:
                step = turns.send(waits)
                # Only this program could end its wait.
                waits = not step
                if step:
                    yield step

    def turns(self, address, words, limit=None):
        """The same concurrently with other programs: also yields False when a wait begins, and None while it lasts.

        Sending True declares that the wait has no end.
        """
        integer("address", address, 0, (1 << 64) - 1)
        integer("words", words, 0, (1 << 32) - 1)
        self.record = None
        for errors in self._errors().values():
            errors.clear()
        try:
            yield from self._steps(address, words, limit)
        except _StopError as stopped:
            (self.record,) = stopped.args

    def _errors(self):
        """Lists of error records by :class:`Engine`."""
        engines = {Engine.TMAU: self.tmau.errors, Engine.PE: self.pe.faults}
        return engines | ({Engine.CONV: self.conv.errors} if self.conv else {})

    def _steps(self, address, words, limit):
        self._index, self._tag = 0, 0
        self._loops = Loops()
        self._refuse(check_range(address, words * WORD_BYTES, self._window, self.tmau.addr_width))
        for count in itertools.count():
            self._tag = 0
            word = self._fetch(address, words)
            self._tag = _tag_of(word)
            if count == limit:
                self._stop(ProgramError.STOPPED)
            kind = kind_of(word)
            yield Step(self._index, kind, word)
            has_conv = self.conv is not None
            self._refuse(check_word(word, has_conv, len(self.smem), self._window, self.tmau.addr_width))
            fields = PROGRAM_WORDS[kind].unpack(word)
            del fields["kind"], fields["tag"]
            if kind == Kind.END:
                yield from self._settle(tuple(Engine))
                self.interrupts += fields["interrupt"]
                return
            if kind == Kind.LOOP:
                self._loop(**fields)
                continue
            if kind == Kind.TMAU:
                self.tmau.execute(word & _COMMAND_BITS)
            elif kind == Kind.CONV:
                self._conv(address, words)
            else:
                yield from getattr(self, f"_{kind.name.lower()}")(**fields)
            self._index += 1

    def _stop(self, code, engine=Engine.NONE, tag=None):
        raise _StopError(ProgramRecord(code, engine, self._tag if tag is None else tag, self._index))

    def _refuse(self, code):
        if code is not None:
            self._stop(code)

    def _fetch(self, address, words):
        """The word at the current index."""
        if self._index >= words:
            self._stop(ProgramError.NO_END)
        return self._read(address + self._index * WORD_BYTES, WORD_BYTES)

    def _read(self, address, count):
        if not self.gmem.holds(address, count).all():
            self._stop(ProgramError.BUS)
        place = address - self.gmem.base
        self.gmem.open_bytes.rely_on(slice(place, place + count), f"the word at {address:#x}")
        return int.from_bytes(self.gmem.read(address, count).tobytes(), "little")

    def _loop(self, count, back):
        place = self._loops.next(self._index, count, back)
        if isinstance(place, ProgramError):
            self._stop(place)
        self._index = place

    def _conv(self, address, words):
        """Executes the job in the next words; the index ends at its last half."""
        job, self._tag = 0, 0
        for half in range(JOB_WORDS):
            self._index += 1
            job |= self._fetch(address, words) << WORD_BITS * half
        if not self.conv.execute(job) and self.conv.errors[-1].code == ConvError.BARRIER:
            self.tmau.errors.append(ErrorRecord(Error.BARRIER_OPERATION, 0, 0, JOB.unpack(job)["barrier"]))

    def _pe(self, count, address):
        """Hands over instructions, which are read a word at a time."""
        for first in range(0, count, _PER_WORD):
            word = self._read(address + first * INSTRUCTION_BYTES, WORD_BYTES)
            for place in range(min(_PER_WORD, count - first)):
                yield from self._hand_over(word >> 8 * INSTRUCTION_BYTES * place & (1 << 8 * INSTRUCTION_BYTES) - 1)

    def _kernel(self, first, count, entry, argument):
        """Hands over instructions that set uniform registers, and the call."""
        for place, value in enumerate(argument[:count]):
            yield from self._hand_over(instruction_word(Operation.MOVU, ud=first + place, imm=value))
        yield from self._hand_over(instruction_word(Operation.CALL, imm=entry))

    def _hand_over(self, instruction):
        """Hands an instruction to the processing engine, which accepts the next one when this one no longer waits."""
        yield from self._settle((Engine.PE,), stop=False)
        self._waiting = instruction
        yield from self._settle((Engine.PE,), stop=False)

    def _resume(self):
        """Executes the waiting instruction if possible; returns whether none waits any longer."""
        if self._waiting is not None:
            try:
                self.pe.execute(self._waiting)
            except (BarrierNotCompleteError, PageNotLoadedError):
                return False
            self._waiting = None
        return True

    def _settle(self, engines, stop=True):
        """Waits for ``engines``; then, if ``stop``, an error of any engine stops the program."""
        yield from self._wait_until(
            lambda: self._resume() or Engine.PE not in engines, "the processing engine waits in this word, or before it"
        )
        if stop:
            self._stop_for_engines()

    def _stop_for_engines(self):
        for engine, errors in self._errors().items():
            if errors:
                self._stop(ProgramError.ENGINE, engine, getattr(errors[0], "tag", 0))

    def _wait_until(self, condition, reason):
        """Waits for ``condition()``, while other programs run; an error of any engine stops the program."""
        turn = False
        while not condition():
            self._stop_for_engines()
            if (yield turn):
                if self.watchdog:
                    self._stop(ProgramError.WATCHDOG)
                raise DeadlockError(f"word {self._index} waits for ever: {reason}")
            turn = None

    def _barrier(self, operation, value, barrier):
        if operation != BarrierOp.TRY_WAIT:
            if self.tmau.barrier(operation, barrier, value) is None:
                self._stop(ProgramError.BARRIER)
            return
        yield from self._settle(())
        self.tmau.open_bytes.rely_on(slice(barrier, barrier + BARRIER.bytes), f"the barrier at {barrier:#x}")
        yield from self._wait_until(
            lambda: Barrier.read(self.smem, barrier).try_wait(value),
            f"nothing completes the phase of parity {value} of the barrier at {barrier:#x}",
        )

    def _wait_all(self, engines):
        yield from self._settle([engine for engine in Engine if engine and (not engines or engines >> engine - 1 & 1)])

    def _register(self, engine, value, offset):
        """Writes a register; interrupts and counters are not modelled."""
        register = WRITABLE[engine][offset]
        if register.name == "control":
            if register.format.unpack(value)["clear_error"]:
                self._errors()[engine].clear()
        elif register.name == "put":
            yield from self._put(self._put_registers.put(**register.format.unpack(value)))
        else:
            self._put_registers.write(register.name, value)

    def _put(self, put):
        """Hands a :class:`PutWord` to the processing engine and waits until it is accepted; None is refused."""
        if put is None:
            self._stop(ProgramError.REGISTER)
        if put.kind == Put.INSTRUCTION:
            yield from self._hand_over(put.word)
        elif put.kind == Put.SEGMENT:
            self.pe.write_segment(put.index, put.word)
        elif put.kind == Put.PAGE:
            self.pe.write_page(put.index, put.word)
        else:
            self._move_page(put)

    def _move_page(self, put):
        """Changes the page entry if the command that moves the page ends without an error."""
        if put.kind != Put.PAGE_DROP:
            command = put.word & ~((1 << _TAG.width) - 1 << _TAG.lsb)
            if self.tmau.execute(command | (_PAGER_TAG | put.index) << _TAG.lsb) is None:
                return
        loaded = {"address": put.address, "valid": 1, "loaded": 1, "on_chip": 1} if put.kind == Put.PAGE_IN else {}
        self.pe.write_page(put.index, PAGE_ENTRY.pack(**loaded))
