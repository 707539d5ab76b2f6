"""A convolution engine as a processor drives it, compared with the golden model."""

import cocotb
from cocotb.triggers import RisingEdge

from tilewright.golden import Conv
from tilewright.spec.conv import CONV_REGISTERS, JOB, ConvError, ConvParams
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.random.conv_jobs import random_jobs

from .axi import Registers
from .common import Source
from .payloads import JOB_END

__all__ = ["Convolver", "some_jobs"]


class Convolver:
    """The ports of a convolution engine that a processor drives.

    Parameters
    ----------
    ports : Ports
    master : AxiLiteMaster
    rng : random.Random
    pauses : Pauses
    base : int
        Byte address of the engine's registers.

    Attributes
    ----------
    jobs : Source
    registers : Registers
    params : ConvParams
        As the registers show them, after :meth:`start`.
    ends : list of (ConvError, int, int)
        Of all jobs that have ended, in order: code, number of the field, tag.
    """

    def __init__(self, ports, master, rng, pauses, base=0):
        self.ports = ports
        self.jobs = Source(ports, "jobs", JOB, rng, pauses.streams)
        self.registers = Registers(master, CONV_REGISTERS, base)
        self.ends = []

    async def start(self):
        """Reads the sizes of the engine; after the first reset."""
        values = {}
        for number in range(3):
            values |= await self.registers.fields(f"params{number}")
        values["types"] = tuple(family for bit, family in enumerate(MM_FAMILIES) if values["types"] >> bit & 1)
        flags = {name: bool(values[name]) for name in ("rotation", "function_table", "zero_first")}
        self.params = ConvParams(**values | flags)
        cocotb.start_soon(self._watch())

    def withdraw(self):
        """Takes back what was not accepted, at the beginning of a reset."""
        self.jobs.withdraw()

    async def run(self, words, cycles=100_000):
        """Issues packed jobs; returns, when the last one has ended, how each of them did."""
        before = len(self.ends)
        for word in words:
            await self.jobs.send(word)
        for _ in range(cycles):
            if len(self.ends) == before + len(words):
                return self.ends[before:]
            await RisingEdge(self.ports["clk"])
        raise TimeoutError(f"{before + len(words) - len(self.ends)} jobs have not ended after {cycles} cycles")

    def golden(self, contents, words):
        """Runs packed jobs on ``contents``, a uint8 array, changed in place; how each of them ends."""
        engine, ends = Conv(contents, self.params), []
        for word in words:
            good = engine.execute(word)
            ends.append((ConvError.NONE, 0, JOB.unpack(word)["tag"]) if good else tuple(engine.errors[-1]))
        return ends

    async def error_record(self):
        """The error record as the registers show it, and their count of errors; both are cleared."""
        error, count = await self.registers.fields("error"), await self.registers.read("error_count")
        await self.registers.write("control", clear_error=1)
        return (ConvError(error["code"]), error["field"], error["tag"]), count

    async def _watch(self):
        """Collects how jobs end; never returns."""
        clk, ended, end = (self.ports[name] for name in ("clk", "job_ended", "job_end"))
        while True:
            await RisingEdge(clk)
            if not self.ports.in_reset and int(ended.value):
                values = JOB_END.unpack(int(end.value))
                self.ends.append((ConvError(values["code"]), values["field"], values["tag"]))


def some_jobs(rng, params, size_bytes, count):
    """Random legal jobs, each with the shared memory of ``size_bytes`` that it runs in: a list of RandomJob."""
    return list(random_jobs(rng.getrandbits(32), params, count, most_macs=2000, smem_bytes=size_bytes))
