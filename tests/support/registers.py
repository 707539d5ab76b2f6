"""Registers of a design by name, as a driver reads and writes them."""

from tilewright.hw.bus.axi4 import Response
from tilewright.verify.pysim.axi import read_word, write_word
from tilewright.verify.pysim.streams import receive, send

__all__ = ["Registers"]


class Registers:
    """Reads and writes registers.

    Parameters
    ----------
    ctx : SimulatorContext
    port : interface
        ``accesses`` of a block, or an AXI4-Lite port.
    registers : iterable of Register
    """

    def __init__(self, ctx, port, registers):
        self.ctx, self._port = ctx, port
        self.named = {register.name: register for register in registers}

    async def access(self, name, data=None):
        """Reads a register, or writes it if there are data: what is answered, and whether it is refused."""
        offset = self.named[name].offset
        if hasattr(self._port, "araddr"):
            if data is None:
                data, response = await read_word(self.ctx, self._port, offset)
                return data, response != Response.OKAY
            return await write_word(self.ctx, self._port, offset, data), False
        written = {} if data is None else {"write": 1, "data": data, "strobe": 0b1111}
        await send(self.ctx, self._port.requests, [{"address": offset} | written])
        (answer,), _ = await receive(self.ctx, self._port.answers, 1)
        return answer.data, answer.error

    async def read(self, name):
        """The data of a register that can be read."""
        data, refused = await self.access(name)
        assert not refused, name
        return data

    async def write(self, name, data=None, *, refused=False, **fields):
        """Writes data, or fields of the register's format."""
        data = self.named[name].format.pack(**fields) if data is None else data
        assert (await self.access(name, data))[1] == refused, name
