"""The hardware around a cluster in simulation."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import connect

from .drivers import RegisterDriver
from .harness import Harness
from .ports import serve_bus, serve_core, shared_memory_arrays

__all__ = ["ClusterHarness"]

#: Members of a cluster that belong to no core.
_SHARED = ("m_axi", "l2_axil")


class ClusterHarness(Harness):
    """A ``Cluster``, each of whose cores is served as one alone; consumers of shared memory are left out.

    Parameters
    ----------
    dut : Cluster
    records : Records
        As of ``cluster_records``: names of scripts and logs end with the number of the core.
    memory_words : int
        Bus words of global memory.
    bus_reads : int
        Bursts of reads that others than its TMAU have in flight at most, for each core.
    """

    def __init__(self, dut, records, *, memory_words, bus_reads=0):
        params = dut.params
        super().__init__(dut, records, smem=params.smem, bus=params.tmau, bus_reads=bus_reads,
                         memory_words=memory_words)  # fmt: skip

    def arrays(self):
        """Every memory that a session loads or dumps, by name; banks begin with the core, as in ``core0_bank0``."""
        arrays = {name: array for name, array in super().arrays().items() if not name.startswith("bank")}
        for number in range(self._dut.params.cores):
            arrays |= shared_memory_arrays(self._smem, f"dut.core{number}", f"core{number}_")
        return arrays

    def elaborate(self, platform):
        m = Module()
        self._run_scripts(m)
        dut = self._place_dut(m)
        cores = dut.params.cores
        serve_bus(self, m, dut.m_axi, self._bus, self._memory_words, self._bus_reads, cores, dut.params.l2)
        sides = [_Side(self, number) for number in range(cores)]
        for number, side in enumerate(sides):
            m.submodules[f"side{number}"] = own = Module()
            ports = {name: getattr(dut, name)[number] for name in dut.signature.members if name not in _SHARED}
            serve_core(side, own, SimpleNamespace(**ports), self._smem, cores)
        if "cache" in self.drivers:
            m.submodules.cache_registers = registers = RegisterDriver(dut.l2_axil.signature.addr_width)
            connect(m, script=self.drivers["cache"].o, driver=registers.i)
            connect(m, driver=registers.axi, dut=dut.l2_axil)
            self.log(m, "cache", registers.answer_valid, registers.answer)
        m.d.comb += [
            self.irq.eq(Cat(side.irq for side in sides).any()),
            self.running.eq(Cat(side.running for side in sides).any()),
        ]
        return m


class _Side:
    """A harness as seen from one core: names without its number."""

    def __init__(self, harness, number):
        self._harness, self._number = harness, number
        self.drivers, self.logs = self._own(harness.drivers), self._own(harness.logs)
        self.irq, self.running = Signal(), Signal()

    def _own(self, named):
        end = str(self._number)
        return {
            name.removesuffix(end): thing for name, thing in named.items() if name.rstrip("0123456789") + end == name
        }

    def log(self, m, name, valid, entry):
        """As of a harness."""
        self._harness.log(m, f"{name}{self._number}", valid, entry)
