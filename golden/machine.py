"""A TMAU with its memories, without cycles: commands in, bytes and error records out."""

from typing import NamedTuple

import numpy as np

from .smem.barrier import Barrier
from .spec import BARRIER, COMMAND, DESCRIPTOR, BarrierOp, Error, Opcode
from .tmau.descriptor import Refusal, check_word
from .tmau.load import tile_bytes, write_rows
from .tmau.setup import check_command
from .tmau.tensor_map import TensorMap
from .tmau.tile import tx_bytes, walk

__all__ = ["ErrorRecord", "Machine", "command_word"]


class ErrorRecord(NamedTuple):
    """An error record (section 9), as the registers show it."""

    code: Error
    tag: int
    field: int
    value: int


def command_word(opcode=Opcode.LOAD, **fields):
    """A packed 512-bit command; fields left out are zero."""
    return COMMAND.pack(opcode=opcode, **fields)


class Machine:
    """What the hardware means, command by command; each is complete when :meth:`execute` returns.

    Descriptors are read from memory every time, as if nothing were cached: whoever changes one must invalidate
    it before hardware is sure to see the same.

    Parameters
    ----------
    gmem : Memory
        Global memory; a read outside is answered as by a bus that answers with an error.
    smem : uint8 array
        Shared memory, changed in place.
    bus_bytes : int
        Bus width, which decides the address in the record of a failed read.
    addr_width : int
        Global addresses wrap modulo 2^addr_width.

    Attributes
    ----------
    errors : list of ErrorRecord
        In order of the commands.
    """

    def __init__(self, gmem, smem, bus_bytes=64, addr_width=64):
        self.gmem = gmem
        self.smem = smem
        self.bus_bytes = bus_bytes
        self.addr_width = addr_width
        self.errors = []

    def execute(self, word):
        """Runs one packed command; returns the bytes that landed, or None if it ended with an error record.

        A refused command changes nothing. A load that meets a read error does not complete its barrier; what it
        leaves in its destination is unspecified, here what was there before.
        """
        command = COMMAND.unpack(word)
        return self._recorded(command, self._run(command))

    def load(self, descriptor, **fields):
        """Runs a load on a packed descriptor (an int) that need not lie in memory; returns as :meth:`execute`."""
        command = COMMAND.unpack(command_word(Opcode.LOAD, **fields))
        return self._recorded(command, self._transfer(command, descriptor))

    def barrier(self, op, address, value=0):
        """Operation ``op`` of a processor on the barrier at ``address``.

        Returns whether the asked phase is complete for TRY_WAIT, or whether this operation completed one; None if it
        ended with an error record (tag 0), and nothing changed.
        """
        done = self._operate(BarrierOp(op), address, value)
        if done is None:
            self.errors.append(ErrorRecord(Error.BARRIER_OPERATION, 0, 0, address))
        return done

    def _recorded(self, command, outcome):
        """Passes bytes on; keeps a refusal as an error record and makes it None."""
        if not isinstance(outcome, Refusal):
            return outcome
        self.errors.append(ErrorRecord(outcome.code, command["tag"], outcome.field, outcome.value))
        return None

    def _run(self, command):
        refusal = check_command(command, None, len(self.smem))
        if refusal:
            return refusal
        if command["opcode"] != Opcode.LOAD:
            return 0
        address = command["descriptor"] & (1 << self.addr_width) - 1
        if not self.gmem.holds(address, DESCRIPTOR.bytes).all():
            return Refusal(Error.DESCRIPTOR_READ, 0, address)
        return self._transfer(command, int.from_bytes(self.gmem.read(address, DESCRIPTOR.bytes).tobytes(), "little"))

    def _transfer(self, command, descriptor):
        refusal = check_word(descriptor)
        if refusal:
            return refusal
        tmap = TensorMap.unpack(descriptor.to_bytes(DESCRIPTOR.bytes, "little"))
        refusal = check_command(command, tmap, len(self.smem))
        if refusal:
            return refusal
        tile = walk(tmap, command["coords"][: tmap.rank], self.addr_width)
        failed = self._failing_word(tile)
        if failed is not None:
            return Refusal(Error.READ, 0, failed)
        write_rows(self.smem, tile_bytes(tmap, tile, self.gmem), command["smem"], tile.pitch, tmap.swizzle)
        return self._signal(command, tx_bytes(tmap))

    def _signal(self, command, landed):
        """Completes the transaction count of the command's barrier, after the bytes landed.

        The command has then done its work: a barrier that cannot count the bytes refuses for itself.
        """
        if command["signal"]:
            self.barrier(BarrierOp.COMPLETE_TX, command["barrier"], landed)
        return landed

    def _operate(self, op, address, value):
        """Applies one operation to the barrier at ``address``; None if it refuses."""
        state = self.smem[address : address + BARRIER.bytes]
        barrier = Barrier.unpack(int.from_bytes(state.tobytes(), "little"))
        try:
            done = barrier.apply(op, value)
        except ValueError:
            return None
        state[:] = np.frombuffer(barrier.pack().to_bytes(BARRIER.bytes, "little"), np.uint8)
        return done

    def _failing_word(self, tile):
        """Address of the first bus word, in the order of the rows, that lies outside global memory; or None."""
        if not tile.inside.any():
            return None
        first = tile.addresses[tile.inside] & ~np.uint64(self.bus_bytes - 1)
        count = tile.stop - tile.start
        failing = ~self.gmem.holds(tile.addresses[tile.inside], count)
        if not failing.any():
            return None
        row = int(first[failing][0])
        end = -(-len(self.gmem) // self.bus_bytes) * self.bus_bytes
        return max(row, end)
