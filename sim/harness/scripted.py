"""What every harness has: drivers that issue scripts at ports, logs of what happens, and the order of the ports."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..hdl.testbench import Array
from .script import Log, ScriptDriver

__all__ = ["ScriptedHarness"]


class ScriptedHarness(wiring.Component):
    """A harness with a driver for each port; a subclass connects them to what it tests.

    Each driver's script is issued when ``start`` has been high for a cycle, and the ports that its ``…_after`` names
    have finished. Cycles are counted from the one after ``start``.

    Parameters
    ----------
    items : dict of str to shape
        An item of the script of each port.
    entries : dict of str to shape
        An entry of each log. Every port has a log of its own name; an item is complete when that has an entry for it.
    depths : dict of str to int
        Entries of each log.
    script_depth : int
        Items of each script.
    first_stall : int
        Number of the first driver's ``Stall``; see there.
    members : dict
        Further members.

    Attributes
    ----------
    issue_stall, seed : Signal, in
        Probability, in 256ths, of a pause before each item of a script; and how all random pauses vary.
    *port*\\ ``_count``, *port*\\ ``_after`` : Signal, in
        Items of the port's script, and the ports that must have finished before: a bit each, in the order of ``items``.
    *port*\\ ``_done`` : Signal, out
        Items that are complete.
    *log*\\ ``_count`` : Signal, out
        Entries of each log that belongs to no port.
    finished : Signal, out
        All items of all ports are complete.
    """

    def __init__(self, items, entries, depths, *, script_depth, first_stall, members):
        self.ports = tuple(items)
        self.drivers = {
            port: ScriptDriver(shape, depth=script_depth, number=number)
            for number, (port, shape) in enumerate(items.items(), start=first_stall)
        }
        self.logs = {name: Log(shape, depth=depths[name]) for name, shape in entries.items()}
        scripts = {f"{port}_count": In(range(script_depth + 1)) for port in self.ports}
        order = {f"{port}_after": In(len(self.ports)) for port in self.ports}
        done = {f"{port}_done": Out(32) for port in self.ports}
        counts = {f"{name}_count": Out(32) for name in self.logs if name not in self.ports}
        own = {"start": In(1), "finished": Out(1), "issue_stall": In(8), "seed": In(16)}
        super().__init__(own | scripts | order | done | counts | members)

    def script_arrays(self):
        """Scripts and logs, which a session loads or dumps, by name."""
        arrays = {}
        for port, driver in self.drivers.items():
            script = driver.script
            arrays[f"{port}_script"] = Array(f"{port}_driver.script.array.words", script.width, script.depth)
        for name, log in self.logs.items():
            arrays[f"{name}_log"] = Array(f"{name}_log.memory.array.words", log.memory.width, log.memory.depth)
        return arrays

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(32)
        m.d.sync += cycle.eq(Mux(self.start, 0, cycle + 1))
        for name, log in self.logs.items():
            m.submodules[f"{name}_log"] = log
            m.d.comb += [log.start.eq(self.start), log.cycle.eq(cycle)]
            if name not in self.ports:
                m.d.comb += getattr(self, f"{name}_count").eq(log.count)
        complete = Signal(len(self.ports))
        for number, port in enumerate(self.ports):
            driver = m.submodules[f"{port}_driver"] = self.drivers[port]
            done = self.logs[port].count
            m.d.comb += [
                driver.start.eq(self.start),
                driver.count.eq(getattr(self, f"{port}_count")),
                driver.enable.eq((getattr(self, f"{port}_after") & ~complete) == 0),
                driver.idle.eq(done == driver.issued),
                driver.stall.eq(self.issue_stall),
                driver.seed.eq(self.seed),
                complete[number].eq(driver.finished & driver.idle),
                getattr(self, f"{port}_done").eq(done),
            ]
        m.d.comb += self.finished.eq(complete.all())
        return m

    def log(self, m, name, valid, entry):
        """Makes an entry of the log when ``valid``."""
        log = self.logs[name]
        m.d.comb += [log.valid.eq(valid), Value.cast(log.entry).eq(entry)]
