"""A cluster of access units as software drives it, compared with the golden model of all its cores."""

import cocotb
import numpy as np

from tilewright.golden import Cluster, GlobalMemory, delivery_bits
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.spec import BarrierOp
from tilewright.spec.cluster import CLUSTER_REGISTERS
from tilewright.spec.tmau_registers import TMAU_REGISTERS

from .axi import AxiMemory, Registers, axi_lite_master
from .bench import MEMORY_BYTES, Bench
from .common import Ports, reset, start_clock
from .shared_memory import ConsumerPort

__all__ = ["ClusterBench", "CorePorts"]

#: Ports that every core has, by their first part.
_OF_CORE = ("barrier_results", "barriers", "commands", "done", "flip", "irq", "read_data", "reads", "s_axil")


class CorePorts(Ports):
    """The ports of one core of a cluster by the names of a core alone, and those of the cluster.

    Parameters
    ----------
    ports : Ports
        Of the cluster.
    number : int
    """

    def __init__(self, ports, number):
        self.dut, self.reset_level = ports.dut, ports.reset_level
        self._ports, self._number = ports, number

    def name(self, port):
        for member in _OF_CORE:
            if port == member or port.startswith(f"{member}_"):
                port = f"{member}_{self._number}{port.removeprefix(member)}"
                break
        return self._ports.name(port)


class ClusterBench:
    """The cores of a cluster, one global memory, and a golden cluster that does what they are told to do.

    Parameters
    ----------
    ports : Ports
    rng : random.Random
    pauses : Pauses

    Attributes
    ----------
    cores : list of Bench
        Each with the golden machine of its core, and with the registers that a core has in a cluster.
    memory : bytearray
        Global memory, behind ``m_axi``.
    """

    def __init__(self, ports, rng, pauses):
        self.ports = ports
        self.memory = bytearray(rng.randbytes(MEMORY_BYTES))
        each = []
        while hasattr(ports.dut, ports.name(f"commands_{len(each)}_valid")):
            each.append(CorePorts(ports, len(each)))
        consumers = [ConsumerPort(core, rng, pauses, len(each)) for core in each]
        golden = Cluster(
            GlobalMemory(np.array(self.memory, np.uint8)),
            [np.zeros(consumer.size, np.uint8) for consumer in consumers],
            bus_bytes=len(ports["m_axi_rdata"]) // 8,
            addr_width=len(ports["m_axi_araddr"]),
        )
        self.cores = []
        for number, (core, consumer) in enumerate(zip(each, consumers, strict=True)):
            master, place = axi_lite_master(core, rng, pauses), (number, len(each))
            bench = Bench(core, consumer, master, rng, pauses, self.memory, golden.cores[number], place)
            bench.registers = Registers(master, TMAU_REGISTERS + CLUSTER_REGISTERS)
            self.cores.append(bench)
        AxiMemory(ports, self.memory, rng, pauses)

    async def start(self):
        """Starts the clock and resets; then every core as after ``Bench.start``."""
        start_clock(self.ports)
        await reset(self.ports)
        for core in self.cores:
            await core.begin()

    async def restart(self):
        """Resets in the middle of whatever is going on; then as after :meth:`start`."""
        for core in self.cores:
            core.withdraw()
        await reset(self.ports)
        for core in self.cores:
            await core.begin_again()

    async def load(self, issuer, tile, receivers):
        """Core ``issuer`` loads a tile into the shared memory of each core of ``receivers``, which all wait for it."""
        core, named = self.cores[issuer], [self.cores[number] for number in receivers]
        parities = [each.golden_barrier().phase for each in named]
        for each in named:
            await each.operate(BarrierOp.EXPECT_TX, tx_bytes(tile.tmap))
            await each.operate(BarrierOp.ARRIVE, 1)
        assert await core.execute(core.command(tile), delivery_bits(receivers)) is not None, (
            f"the load of {tile} failed"
        )
        for number, each, parity in zip(receivers, named, parities, strict=True):
            assert await each.operate(BarrierOp.TRY_WAIT, parity), f"the barrier of core {number} is not complete"

    async def all_at_once(self, *running):
        """Coroutines, side by side."""
        for task in [cocotb.start_soon(each) for each in running]:
            await task

    async def compare(self):
        """Every byte of all memories is what the golden cluster has."""
        for core in self.cores:
            await core.compare()
