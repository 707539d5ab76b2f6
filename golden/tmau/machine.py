"""A TMAU with its memories, without cycles: commands in, bytes and error records out."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from tilewright.spec import (
    BARRIER,
    COMMAND,
    DESCRIPTOR,
    FORMATS,
    TENSOR_OPCODES,
    BarrierOp,
    Element,
    Error,
    LaneLayout,
    Opcode,
    Reduction,
    Space,
)
from tilewright.spec.cluster import ClusterError
from tilewright.spec.tmau_registers import FEATURES, MOST_PROCESSORS, TMAU_REGISTERS, processor_of
from tilewright.spec.tmau_registers import features as known_features

from ..arguments import field_value, format_values, integer, listed, member, packed, power_of_two, shown
from ..memory import OpenBytes, check_global, check_shared
from ..smem import Barrier
from .block import block_bytes, block_source, check_block, land_block, run_block
from .bus_errors import BusError, failed_read, failed_write, loaded, write_global
from .checks import Windows, check_command, check_features
from .descriptor import Refusal, check_word
from .lanes import check_lanes, copy_lanes, lane_places
from .tensor_map import TensorMap
from .tile import tx_bytes, walk
from .transfer import combine, load_tile, store_tile

__all__ = ["ErrorRecord", "Machine", "command_word", "is_unsupported"]

_SIDES = ("source", "destination")
_ROOM = 1 << 20  # bytes of shared memory that no rule but a missing feature refuses


class ErrorRecord(NamedTuple):
    """An error record (docs/tmau.md, "Errors"), as the registers show it.

    ``others`` are addresses that hardware may report instead of ``address``, for a write error only.
    """

    code: Error | ClusterError
    tag: int
    field: int
    address: int
    others: range = range(0)

    @classmethod
    def of_registers(cls, error, address_lo, address_hi):
        """The record in the three registers; its code is ``Error.NONE`` if there is none."""
        fields = _ERROR_REGISTER.unpack(error)
        kind = ClusterError if fields["code"] in list(ClusterError) else Error
        return cls(kind(fields["code"]), fields["tag"], fields["field"], address_lo | address_hi << 32)

    def admits(self, record):
        """Whether hardware that reports ``record`` obeys the specification."""
        return self[:3] == record[:3] and (record.address == self.address or record.address in self.others)


_ERROR_REGISTER = next(register.format for register in TMAU_REGISTERS if register.name == "error")


def command_word(opcode=Opcode.LOAD, **fields):
    """A packed 512-bit command of the format of ``opcode``; omitted fields are zero.

    Members of enumerations may be names: ``command_word("store", reduction="add")``. An unknown opcode has the fields
    of ``COMMAND``. ValueError for an unknown field or a value out of range, TypeError for a value of the wrong kind.
    """
    opcode = field_value(COMMAND["opcode"], opcode)
    fmt = FORMATS.get(opcode, COMMAND)
    return fmt.pack(opcode=opcode, **format_values(f"{fmt.name} command", fmt.fields, fields))


def is_unsupported(fields, descriptor, features):
    """Whether hardware with these features answers a command with UNSUPPORTED, if no other rule is broken.

    Parameters
    ----------
    fields : dict
        Of the command's format, with the opcode; omitted ones are zero.
    descriptor : bytes or None
        Packed, for a command on a tensor.
    features : sequence of str
        Names in ``spec.tmau_registers.FEATURES``.
    """
    opcode = fields["opcode"]
    if opcode not in FORMATS:
        return False
    command = FORMATS[opcode].unpack(FORMATS[opcode].pack(**fields))
    refusals = [check_command(command, None, _ROOM, features=features)]
    if opcode in (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK):
        refusals.append(check_block(command, _ROOM, features=features))
    if opcode == Opcode.LANES:
        refusals.append(check_lanes(command, _ROOM, features=features))
    if descriptor:
        refusal = check_word(int.from_bytes(descriptor, "little"), features)
        tmap = None if refusal else TensorMap.unpack(descriptor)
        refusals.append(refusal or check_command(command, tmap, _ROOM, features=features))
    return any(refusal and refusal.code == Error.UNSUPPORTED for refusal in refusals)


class Machine:
    """An access unit; each command is complete when :meth:`execute` returns.

    Descriptors are read from memory every time, as if nothing were cached: hardware is sure to see a change only after
    the descriptor has been invalidated.

    Parameters
    ----------
    gmem : Memory
        Global memory; an access outside is answered like a bus error.
    smem : uint8 array
        Shared memory, changed in place.
    bus_bytes : int
        Bus width, on which the address in the record of a bus error depends.
    addr_width : int
        Global addresses wrap modulo 2^addr_width.
    windows : Windows or None
        Which confine the commands.
    features : sequence of str
        Of ``spec.tmau_registers.FEATURES``; commands that need another one are refused.
    processors : sequence of Windows, or ()
        Of each processor that shares the unit, in addition to ``windows``: the upper bits of a tag are the number of
        the processor.

    Attributes
    ----------
    errors : list of ErrorRecord
        In order of the commands.
    open_bytes : OpenBytes
        Bytes of shared memory that the specification leaves open; ``gmem`` has those of global memory. Memory that is
        written without the machine stays open.
    """

    def __init__(self, gmem, smem, bus_bytes=64, addr_width=64, windows=None, features=tuple(FEATURES),
                 processors=()):  # fmt: skip
        check_global(gmem)
        check_shared(smem)
        for confining in (Windows() if windows is None else windows, *listed("processors", processors)):
            if not isinstance(confining, Windows):
                raise TypeError(f"windows must be golden.Windows, not {shown(confining)}")
        self.gmem = gmem
        self.smem = smem
        self.open_bytes = OpenBytes(smem)
        self.bus_bytes = power_of_two("bus_bytes", bus_bytes)
        self.addr_width = integer("addr_width", addr_width, 1, 64)
        self.features = known_features(features)
        self.windows = windows or Windows()
        self.processors = tuple(processors)
        integer("the number of processors", len(self.processors), 0, MOST_PROCESSORS)
        if {self.windows, *self.processors} != {Windows()} and "windows" not in self.features:
            raise ValueError(f"windows need the feature windows: {windows!r}")
        self.errors = []

    def execute(self, word):
        """Runs one packed command; returns the bytes of its transfer, or None if it ended with an error record.

        Commands without a transfer return 0. A refused command changes nothing. A load with a read error does not
        complete its barrier; its destination is open, here unchanged. A write error keeps what did not fail.
        """
        word = packed("word", word, COMMAND.bits)
        command = FORMATS.get(COMMAND.unpack(word)["opcode"], COMMAND).unpack(word)
        return self._recorded(command, self._run(command))

    def execute_on(self, descriptor, opcode=Opcode.LOAD, **fields):
        """Runs a command on a packed descriptor (an int), instead of one in memory; returns as :meth:`execute`."""
        command = COMMAND.unpack(command_word(opcode, **fields))
        return self._recorded(command, self._transfer_on(command, packed("descriptor", descriptor, DESCRIPTOR.bits)))

    def barrier(self, op, address, value=0):
        """Operation ``op`` of a processor on the barrier at ``address``.

        Returns whether the phase is complete for TRY_WAIT, or whether another operation completed one; None if it ended
        with an error record (tag 0), and nothing changed.
        """
        operation, address, value = member("op", BarrierOp, op), integer("address", address, 0), integer("value", value)
        done = self._operate(operation, address, value)
        if done is None:
            self.errors.append(ErrorRecord(Error.BARRIER_OPERATION, 0, 0, address))
        return done

    def _recorded(self, command, outcome):
        """Forwards a number of bytes; appends a refusal or a bus error to the error records, and returns None."""
        if isinstance(outcome, Refusal):
            self.errors.append(ErrorRecord(outcome.code, command["tag"], outcome.field, 0))
        elif isinstance(outcome, BusError):
            self.errors.append(ErrorRecord(outcome.code, command["tag"], 0, *outcome[1:]))
        else:
            return outcome
        return None

    def _run(self, command):
        opcode = command["opcode"]
        refusal = check_command(command, None, *self._limits(command))
        if refusal:
            return refusal
        if opcode in TENSOR_OPCODES:
            return self._fetch_and_transfer(command)
        if opcode in (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK):
            return self._block(command)
        if opcode == Opcode.REPLACE:
            return self._replace(command)
        if opcode == Opcode.LANES:
            return self._lanes(command)
        return 0

    def _limits(self, command):
        """Further arguments of the checks of a command."""
        windows = self.windows
        if len(self.processors) > 1:
            number = processor_of(command["tag"], len(self.processors))
            windows = self.processors[number].within(self.windows)
        return len(self.smem), windows, self.addr_width, self.features

    def _fetch_and_transfer(self, command):
        address = command["descriptor"] & (1 << self.addr_width) - 1
        if not self.gmem.holds(address, DESCRIPTOR.bytes).all():
            return BusError(Error.DESCRIPTOR_READ, address)
        place = int(self.gmem.places(address))
        self.gmem.open_bytes.rely_on(slice(place, place + DESCRIPTOR.bytes), f"the descriptor at {address:#x}")
        return self._transfer(command, int.from_bytes(self.gmem.read(address, DESCRIPTOR.bytes).tobytes(), "little"))

    def _transfer_on(self, command, descriptor):
        """The same with a descriptor that is not fetched."""
        return check_features(command, self.features) or self._transfer(command, descriptor)

    def _transfer(self, command, descriptor):
        refusal = check_word(descriptor, self.features)
        if refusal:
            return refusal
        tmap = TensorMap.unpack(descriptor.to_bytes(DESCRIPTOR.bytes, "little"))
        refusal = check_command(command, tmap, *self._limits(command))
        if refusal:
            return refusal
        if command["opcode"] == Opcode.PREFETCH:
            return 0
        tile = walk(tmap, command["coords"][: tmap.rank], self.addr_width, command["offsets"])
        if command["opcode"] == Opcode.LOAD:
            touched = tile.shared_bytes(command["smem"], tmap.swizzle)
            refusal = self._undeliverable(command)
            if refusal:
                return refusal
            failure = failed_read(self.gmem, tile.global_bytes(), self.bus_bytes)
            if failure:
                self._spoil(command, touched)
                return failure
            write = partial(load_tile, tmap, tile, self.gmem, command["smem"])
            return self._deliver(command, "smem", touched, write, tx_bytes(tmap), loaded(tmap, tile, self.gmem))
        reduction = Reduction(command["reduction"] if command["opcode"] == Opcode.REDUCE else 0)
        smem, targets, marks = command["smem"], tile.global_bytes(), None
        if not command["fill"] and self.open_bytes:
            marks = self.open_bytes.at(tile.shared_bytes(smem, tmap.swizzle))[tile.inside, tile.start : tile.stop]
        carry_out = partial(store_tile, tmap, tile, self.gmem, self.smem, smem, reduction, fill=command["fill"])
        return self._store(targets, carry_out, tx_bytes(tmap), marks, reduction, tmap.element)

    def _block(self, command):
        copies = command["opcode"] == Opcode.COPY_BLOCK
        refusal = check_block(command, *self._limits(command), apart=copies and self._is_apart(command))
        refusal = refusal or (self._undeliverable(command) if copies else None)
        if refusal:
            return refusal
        if not copies or not command["size"]:
            return 0
        size, owner = command["size"], self._source_owner(command)
        in_global = [command[f"{side}_space"] == Space.GLOBAL for side in _SIDES]
        sources, targets = (
            block_bytes(command[side], size, self.addr_width)
            if is_global
            else np.arange(command[side], command[side] + size)
            for side, is_global in zip(_SIDES, in_global, strict=True)
        )
        reduction = Reduction(command["reduction"])
        element = Element(command["element"]) if reduction else None

        def write(smem):
            land_block(command, block_source(command, self.gmem, owner.smem, self.addr_width), smem)

        carry_out = partial(run_block, command, self.gmem, owner.smem, self.addr_width)
        return self._copy(command, size, owner, sources, targets, in_global, carry_out, write, reduction, element)

    def _lanes(self, command):
        refusal = check_lanes(command, *self._limits(command))
        if refusal:
            return refusal
        size = math.prod(command["shape"]) * Element(command["element"]).bytes
        in_global = [command[f"{side}_layout"] == LaneLayout.GLOBAL for side in _SIDES]
        places = (lane_places(command, side, len(self.smem), self.addr_width) for side in _SIDES)
        carry_out = partial(copy_lanes, command, self.gmem, self.smem, self.addr_width)
        return self._copy(command, size, self, *places, in_global, carry_out, lambda smem: carry_out())

    def _copy(self, command, size, owner, sources, targets, in_global, carry_out, write, reduction=Reduction.NONE,
              element=None):  # fmt: skip
        """Copies bytes between two places, each in global memory if ``in_global``, otherwise in shared memory.

        ``owner`` is the machine whose shared memory is read. ``carry_out`` writes global memory, ``write`` the shared
        memory that is its argument. Returns ``size``, or the bus error.
        """
        from_global, to_global = in_global
        failure = failed_read(self.gmem, sources, self.bus_bytes) if from_global else None
        if failure:
            if to_global:
                self.gmem.open_bytes.spoil(self.gmem.places(targets[self.gmem.holds(targets, 1)]))
            else:
                self._spoil(command, targets)
            return failure
        open_bytes, marks = (self.gmem if from_global else owner).open_bytes, None
        if open_bytes:
            marks = open_bytes.at(self.gmem.places(sources) if from_global else sources)
        if to_global:
            marks = None if marks is None else marks[None]
            return self._store(targets[None], carry_out, size, marks, reduction, element)
        return self._deliver(command, "destination", targets, write, size, marks, element.bytes if element else 0)

    def _store(self, targets, carry_out, count, marks, reduction=Reduction.NONE, element=None):
        """Lets ``carry_out`` write global memory at ``targets``; returns ``count``, or the bus error."""
        write_global(self.gmem, targets, carry_out, marks, reduction, element)
        return failed_write(self.gmem, targets.ravel(), self.bus_bytes) or count

    # Methods that a core of a cluster overrides (docs/cluster.md).

    def _undeliverable(self, command):
        """Why the data of a command cannot be written to shared memory, as a refusal, or None."""

    def _is_apart(self, command):
        """Whether a COPY_BLOCK reads another shared memory than it writes."""
        return False

    def _source_owner(self, command):
        """The machine whose shared memory a COPY_BLOCK reads."""
        return self

    def _deliver(self, command, name, touched, write, count, marks=None, reduced_bytes=0):
        """Lets ``write`` put bytes at the addresses ``touched``, which the field ``name`` gives, and counts them.

        ``marks`` and ``reduced_bytes`` as in ``OpenBytes.write``.
        """
        write(self.smem)
        self.open_bytes.write(touched, marks, reduced_bytes)
        return self._signal(command, count)

    def _spoil(self, command, touched):
        """Marks the bytes at ``touched`` in shared memory as open, because their new values could not be read."""
        self.open_bytes.spoil(touched)

    def _replace(self, command):
        """Two reductions of the 64-bit word with the field: AND clears the old number, OR inserts the new one.

        No field of a descriptor crosses a word.
        """
        field = DESCRIPTOR.fields[command["field"]]
        word, lsb = divmod(field.lsbs[command["index"]], 64)
        targets = block_bytes(command["descriptor"] + 8 * word, 8, self.addr_width)[None]
        others = ~(field.mask << lsb) & (1 << 64) - 1
        outcome = 0
        for reduction, operand in ((Reduction.AND, others), (Reduction.OR, command["value"] << lsb)):
            source = np.frombuffer(operand.to_bytes(8, "little"), np.uint8)[None]
            carry_out = partial(combine, self.gmem, targets, source, reduction, Element.U64)
            outcome = outcome or self._store(targets, carry_out, 0, None, reduction, Element.U64)
        return outcome

    def _signal(self, command, landed):
        """Completes the transaction count of the command's barrier, after the bytes landed.

        The command itself has then succeeded: a barrier that cannot count the bytes has its own error record.
        """
        if command["signal"]:
            self.barrier(BarrierOp.COMPLETE_TX, command["barrier"], landed)
        return landed

    def _operate(self, op, address, value):
        """Applies one operation to the barrier at ``address``; None if it is refused or the address is misaligned."""
        if address % BARRIER.bytes:
            return None
        if address >= len(self.smem):
            raise IndexError(f"a barrier at {address:#x} is outside the {len(self.smem)} bytes of shared memory")
        if op != BarrierOp.INIT:
            self.open_bytes.rely_on(slice(address, address + BARRIER.bytes), f"the barrier at {address:#x}")
        barrier = Barrier.read(self.smem, address)
        try:
            done = barrier.apply(op, value)
        except ValueError:
            return None
        barrier.write(self.smem, address)
        if op == BarrierOp.INIT:
            self.open_bytes.write(np.arange(address, address + BARRIER.bytes))
        return done
