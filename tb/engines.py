"""A processing engine and a convolution engine as a processor drives them, compared with the golden models."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from tilewright.golden import Conv, Fault, PeSizes, gemm_program
from tilewright.spec import Swizzle
from tilewright.spec.arithmetic import UNITS
from tilewright.spec.conv import CONV_REGISTERS, JOB, ConvError, ConvParams
from tilewright.spec.pe import MM_FAMILIES, PE_REGISTERS, MmType, PeError
from tilewright.verify.random.conv_jobs import random_jobs

from .axi import Registers
from .common import Source
from .payloads import INSTRUCTION, JOB_END, fault, indexed_word

__all__ = ["Convolver", "Multiplier", "check_integers", "random_product", "some_jobs"]


def _chosen(names, bits):
    """The names whose bits are set."""
    return tuple(name for bit, name in enumerate(names) if bits >> bit & 1)


class _Engine:
    """The ports of an engine that a processor drives.

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
    registers : Registers
    """

    _TABLE = ()
    #: Registers with parameters.
    _PARAMS = (0, 1, 2)

    def __init__(self, ports, master, rng, pauses, base=0):
        self.ports = ports
        self.registers = Registers(master, self._TABLE, base)
        self._rng, self._pause = rng, pauses.streams
        self._sources = []

    def _source(self, name, fmt):
        self._sources.append(Source(self.ports, name, fmt, self._rng, self._pause))
        return self._sources[-1]

    async def start(self):
        """Reads the sizes of the engine; after the first reset."""
        values = {}
        for number in self._PARAMS:
            values |= await self.registers.fields(f"params{number}")
        values["types"] = _chosen(MM_FAMILIES, values["types"])
        self._take(values)
        cocotb.start_soon(self._watch())

    def withdraw(self):
        """Takes back what was not accepted, at the beginning of a reset."""
        for source in self._sources:
            source.withdraw()

    async def _until(self, over, what, cycles):
        """Waits until ``over()``; TimeoutError if that takes too long."""
        for _ in range(cycles):
            if over():
                return
            await RisingEdge(self.ports["clk"])
        raise TimeoutError(f"{what} not ended after {cycles} cycles")

    async def _watch(self):
        """Collects what the engine reports; never returns."""
        while True:
            await RisingEdge(self.ports["clk"])
            if not self.ports.in_reset:
                self._see()


class Multiplier(_Engine):
    """A processing engine.

    Attributes
    ----------
    instructions, segments, pages : Source
    sizes : PeSizes
        As the registers show them, after :meth:`start`.
    faults : list of Fault
        Of all instructions that had an error, in program order.
    halts : int
        Halts that were performed.

    and those of all engines.
    """

    _TABLE = PE_REGISTERS
    _PARAMS = (0, 1, 2, 4)

    def __init__(self, ports, master, rng, pauses, base=0):
        super().__init__(ports, master, rng, pauses, base)
        self.instructions = self._source("instructions", INSTRUCTION)
        self.segments, self.pages = (
            self._source(name, indexed_word(len(ports[f"{name}_payload"]), bits))
            for name, bits in (("segments", 256), ("pages", 64))
        )
        self._valid, self._record, self._halted = (ports[name] for name in ("fault_valid", "fault", "halted"))
        self._fault = fault(len(self._record))
        self.faults = []
        self.halts = 0

    def _take(self, values):
        values["units"] = _chosen(UNITS, values["units"])
        # Memories that are not built have no words.
        values |= {name: values[name] or 1 for name in ("kernel_words", "lookup_words")}
        self.sizes = PeSizes(**{name: values[name] for name in PeSizes.__annotations__})

    async def write_tables(self, segments, entries):
        """Writes packed segments and page entries, from number 0 on."""
        for source, words in ((self.segments, segments), (self.pages, entries)):
            for index, word in enumerate(words):
                await source.send({"index": index, "word": word})

    async def run(self, words, cycles=50_000):
        """Issues packed instructions, of which the last is a halt, and returns when it is performed."""
        before = self.halts
        for word in words:
            await self.instructions.send({"word": word})
        await self._until(lambda: self.halts > before, "the program has", cycles)

    async def error_record(self):
        """The error record as the registers show it, and their count of errors; both are cleared."""
        error = await self.registers.fields("error")
        threads = await self.registers.fields("error_threads")
        number = await self.registers.read("error_number")
        count = await self.registers.read("error_count")
        await self.registers.write("control", clear_error=1)
        return Fault(PeError(error["code"]), number, threads["first"], threads["last"], error["register"]), count

    def _see(self):
        self.halts += int(self._halted.value)
        if int(self._valid.value):
            values = self._fault.unpack(int(self._record.value))
            del values["inside"]
            if values["code"]:
                self.faults.append(Fault(**values | {"code": PeError(values["code"])}))


class Convolver(_Engine):
    """A convolution engine.

    Attributes
    ----------
    jobs : Source
    params : ConvParams
        As the registers show them, after :meth:`start`.
    ends : list of (ConvError, int, int)
        Of all jobs that have ended, in order: code, number of the field, tag.

    and those of all engines.
    """

    _TABLE = CONV_REGISTERS

    def __init__(self, ports, master, rng, pauses, base=0):
        super().__init__(ports, master, rng, pauses, base)
        self.jobs = self._source("jobs", JOB)
        self._ended, self._end = ports["job_ended"], ports["job_end"]
        self.ends = []

    def _take(self, values):
        flags = {name: bool(values[name]) for name in ("rotation", "function_table", "zero_first")}
        self.params = ConvParams(**values | flags)

    async def run(self, words, cycles=100_000):
        """Issues packed jobs; returns, when the last one has ended, how each of them did."""
        before = len(self.ends)
        for word in words:
            await self.jobs.send(word)
        await self._until(lambda: len(self.ends) == before + len(words), f"{len(words)} jobs have", cycles)
        return self.ends[before:]

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

    def _see(self):
        if int(self._ended.value):
            values = JOB_END.unpack(int(self._end.value))
            self.ends.append((ConvError(values["code"]), values["field"], values["tag"]))


def _random_operands(rng, sizes, kind):
    """Operands of a random small product, of raw bits."""
    m, k, n = rng.randint(1, 2 * sizes.threads), rng.randint(1, 40), rng.randint(1, 12)
    noise = np.random.default_rng(rng.getrandbits(32))
    if kind.is_float:
        a, b = (noise.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        if kind == MmType.F16:
            return a.astype(np.float16).view(np.uint16), b.astype(np.float16).view(np.uint16)
        return tuple((each.view(np.uint32) >> 16).astype(np.uint16) for each in (a, b))
    element = np.uint8 if kind.bytes == 1 else np.uint16
    return tuple(noise.integers(0, 1 << 8 * kind.bytes, shape, element) for shape in ((m, k), (k, n)))


def random_product(rng, sizes, size_bytes, kind=None):
    """A random small product that fits, of any type or of ``kind``: its type, operands and program."""
    kind = rng.choice(list(MmType)) if kind is None else kind
    while True:
        a, b = _random_operands(rng, sizes, kind)
        options = {"swizzle": rng.choice(list(Swizzle)), "transpose": rng.randint(0, 1)}
        try:
            program = gemm_program(
                a, b, kind, sizes=sizes, size_bytes=size_bytes, ka=rng.randint(1, 2), kb=rng.randint(1, 2), **options
            )
        except ValueError:
            continue  # too many registers or bytes
        return kind, a, b, program


def check_integers(kind, a, b, c):
    """Integer products are also what numpy makes of them, modulo 2^32."""
    if kind.is_float:
        return
    signed = [np.int8, np.uint8] if kind.bytes == 1 else [np.int16, np.uint16]
    a, b = a.view(signed[kind >> 1 & 1]).astype(np.int64), b.view(signed[kind & 1]).astype(np.int64)
    assert np.array_equal(c, (a @ b & 0xFFFFFFFF).astype(np.uint32)), f"{kind!r} differs from numpy"


def some_jobs(rng, params, size_bytes, count):
    """Random legal jobs, each with the shared memory of ``size_bytes`` that it runs in: a list of RandomJob."""
    return list(random_jobs(rng.getrandbits(32), params, count, most_macs=2000, smem_bytes=size_bytes))
