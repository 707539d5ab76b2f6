"""The hardware around a design in simulation: drivers that issue scripts, memory, and logs of what happens."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from ..hdl.testbench import Array
from .drivers import Log, RegisterDriver, ScriptDriver
from .memory_model import CHANNELS
from .ports import bus_members, memory_array, register_arrays, serve_bus, serve_core, serve_reads, shared_memory_arrays
from .streams import Streams

__all__ = ["ClusterHarness", "Harness"]


class Harness(wiring.Component):
    """A ``Core`` with all of its ports served.

    Each driver's script is issued when ``start`` has been high for a cycle, and the ports that its ``…_after`` names
    have finished. Cycles are counted from the one after ``start``.

    Parameters
    ----------
    dut : Core
    records : Records
        The scripts and logs of its ports: ``core_records``.
    memory_words : int
        Bus words of global memory.
    """

    def __init__(self, dut, records, *, memory_words=0):
        self._dut = dut
        self._records = records
        self._memory_words = memory_words
        self._bus = bus = dut.params.tmau
        self.running = Signal()  # a program of the design runs
        self._streams = None
        ports, depth = tuple(records.items), records.depth
        # Numbers of stalls: the memory's first, then the drivers', then the consumer's.
        first_stall = len(CHANNELS) if bus else 0
        self.drivers = {
            port: ScriptDriver(shape, depth=depth, number=number)
            for number, (port, shape) in enumerate(records.items.items(), start=first_stall)
        }
        self.logs = {name: Log(shape, depth=records.log_depth(name)) for name, shape in records.entries.items()}
        members = {
            "start": In(1),
            # All items of all ports are complete, and no program runs.
            "finished": Out(1),
            # Probability, in 256ths, of a pause before each item of a script, and the seed of all pauses.
            "issue_stall": In(8),
            "seed": In(16),
            "irq": Out(1),
        }
        for port in ports:
            # Items of its script; ports that must have finished before, a bit each in the order of ``records.items``;
            # items that are complete.
            members |= {f"{port}_count": In(range(depth + 1)), f"{port}_after": In(len(ports)), f"{port}_done": Out(32)}
        members |= {f"{name}_count": Out(32) for name in records.others}
        if "reads" in ports:
            members["answer_stall"] = In(8)  # probability of a pause before each answer of the consumer port
        super().__init__(members | (bus_members(bus, memory_words) if bus else {}))

    def arrays(self):
        """Every memory that a session loads or dumps, by name."""
        arrays = memory_array(self._bus, self._memory_words) if self._bus else {}
        arrays |= self._arrays_of_cores()
        for port, driver in self.drivers.items():
            script = driver.script
            arrays[f"{port}_script"] = Array(f"{port}_driver.script.array.words", script.width, script.depth)
        for name, log in self.logs.items():
            arrays[f"{name}_log"] = Array(f"{name}_log.memory.array.words", log.memory.width, log.memory.depth)
        return arrays

    def _arrays_of_cores(self):
        params = self._dut.params
        return shared_memory_arrays(params.smem) | (register_arrays(params.pe) if params.pe else {})

    def name_streams(self):
        """Adds a name for every field of the design's ports, for waveforms.

        Returns
        -------
        str
            Verilog that belongs to the harness then.
        dict of str to dict of str to (int, bool)
            By the port the names, seen from the harness, with their bits and whether they are signed.
        """
        self._streams = Streams(self._dut)
        return self._streams.verilog(), {
            group: {f"streams.{group}.{name}": (len(value), value.shape().signed) for name, value in fields.items()}
            for group, fields in self._streams.groups.items()
        }

    def _place_dut(self, m):
        m.submodules.dut = self._dut
        if self._streams:
            m.submodules.streams = self._streams
        return self._dut

    def elaborate(self, platform):
        m = Module()
        self._run_scripts(m)
        dut = self._place_dut(m)
        if self._bus:
            serve_bus(self, m, dut.m_axi, dut.params, self._memory_words)
        serve_core(self, m, dut, dut.params.smem)
        if "reads" in self.drivers:
            serve_reads(self, m, dut, number=len(CHANNELS) + len(self.drivers))
        return m

    def _run_scripts(self, m):
        cycle = Signal(32)
        m.d.sync += cycle.eq(Mux(self.start, 0, cycle + 1))
        for name, log in self.logs.items():
            m.submodules[f"{name}_log"] = log
            m.d.comb += [log.start.eq(self.start), log.cycle.eq(cycle)]
            if name not in self.drivers:
                m.d.comb += getattr(self, f"{name}_count").eq(log.count)
        programs = not {"words", "words0"}.isdisjoint(self.logs)
        complete = Signal(len(self.drivers))
        for number, (port, driver) in enumerate(self.drivers.items()):
            m.submodules[f"{port}_driver"] = driver
            done = self.logs[port].count
            m.d.comb += [
                driver.start.eq(self.start),
                driver.count.eq(getattr(self, f"{port}_count")),
                driver.enable.eq((getattr(self, f"{port}_after") & ~complete) == 0),
                # What a program has had done counts too.
                driver.idle.eq(done >= driver.issued if programs else done == driver.issued),
                driver.stall.eq(self.issue_stall),
                driver.seed.eq(self.seed),
                complete[number].eq(driver.finished & driver.idle),
                getattr(self, f"{port}_done").eq(done),
            ]
        m.d.comb += self.finished.eq(complete.all() & ~self.running)

    def log(self, m, name, valid, entry):
        """Makes an entry of the log when ``valid``."""
        log = self.logs[name]
        m.d.comb += [log.valid.eq(valid), Value.cast(log.entry).eq(entry)]


#: Members of a cluster that belong to no core.
_SHARED = ("m_axi", "l2_axil")


class ClusterHarness(Harness):
    """A ``Cluster``, each of whose cores is served as one alone; consumers of shared memory are left out.

    Names of scripts, logs and arrays of a core end or begin with its number: ``commands0``, ``core0_bank0``. They are
    those of ``cluster_records``.
    """

    def _arrays_of_cores(self):
        params, arrays = self._dut.params, {}
        for number in range(params.cores):
            arrays |= shared_memory_arrays(params.smem, f"dut.core{number}", f"core{number}_")
        return arrays

    def elaborate(self, platform):
        m = Module()
        self._run_scripts(m)
        dut = self._place_dut(m)
        cores = dut.params.cores
        serve_bus(self, m, dut.m_axi, dut.params.core, self._memory_words, cores, dut.params.l2)
        sides = [_Side(self, number) for number in range(cores)]
        for number, side in enumerate(sides):
            m.submodules[f"side{number}"] = own = Module()
            ports = {name: getattr(dut, name)[number] for name in dut.signature.members if name not in _SHARED}
            serve_core(side, own, SimpleNamespace(**ports), dut.params.smem, cores)
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
        """See ``Harness.log``."""
        self._harness.log(m, f"{name}{self._number}", valid, entry)
