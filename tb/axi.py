"""cocotbext-axi at the AXI ports: its memory behind ``m_axi``, its master at ``s_axil``."""

from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

__all__ = ["AxiMemory", "Registers", "axi_lite_master"]


def _pauses(rng, probability):
    while True:
        yield rng.random() < probability


class AxiMemory:
    """cocotbext-axi's memory behind ``m_axi``: in order, without errors.

    Parameters
    ----------
    ports : Ports
    contents : bytearray
        What lies from address 0 on; changed in place.
    rng : random.Random
    pauses : Pauses
    """

    def __init__(self, ports, contents, rng, pauses):
        bus = AxiBus.from_prefix(ports.dut, ports.name("m_axi"))
        ram = AxiRam(bus, ports["clk"], ports["rst"], bool(ports.reset_level), mem=contents)
        for side, channels in ((ram.read_if, ("ar", "r")), (ram.write_if, ("aw", "w", "b"))):
            for channel in channels:
                getattr(side, f"{channel}_channel").set_pause_generator(_pauses(rng, pauses.bus))


def axi_lite_master(ports, rng, pauses):
    """cocotbext-axi's master at ``s_axil``: ``read``, ``write``, ``read_dword``, ``write_dword`` of byte addresses."""
    bus = AxiLiteBus.from_prefix(ports.dut, ports.name("s_axil"))
    master = AxiLiteMaster(bus, ports["clk"], ports["rst"], bool(ports.reset_level))
    for side, channels in ((master.read_if, ("ar", "r")), (master.write_if, ("aw", "w", "b"))):
        for channel in channels:
            getattr(side, f"{channel}_channel").set_pause_generator(_pauses(rng, pauses.bus))
    return master


class Registers:
    """Registers by their names.

    Parameters
    ----------
    master : AxiLiteMaster
    table : sequence of Register
        Of ``spec``.
    base : int
        Byte address of the first register.
    """

    def __init__(self, master, table, base=0):
        self._master, self._base = master, base
        self._table = {register.name: register for register in table}

    def address(self, name):
        """Byte address of register ``name``."""
        return self._base + self._table[name].offset

    async def read(self, name):
        """The word in register ``name``."""
        return await self._master.read_dword(self.address(name))

    async def fields(self, name):
        """The fields of register ``name``, a dict."""
        return self._table[name].format.unpack(await self.read(name))

    async def write(self, name, **fields):
        """Writes register ``name``: fields that are left out are zero."""
        await self._master.write_dword(self.address(name), self._table[name].format.pack(**fields))

    async def refuses(self, address, write=False):
        """Whether an access to a byte address is answered with an error."""
        access = self._master.write(address, bytes(4)) if write else self._master.read(address, 4)
        return (await access).resp != AxiResp.OKAY
