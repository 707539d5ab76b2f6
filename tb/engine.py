"""A processing engine as a processor drives it, compared with the golden model."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from tilewright.golden import Fault, PeSizes, gemm_program
from tilewright.spec import Swizzle
from tilewright.spec.pe import MM_FAMILIES, PE_REGISTERS, MmType, PeError

from .axi import Registers
from .common import Source
from .payloads import INSTRUCTION, fault, indexed_word

__all__ = ["Engine", "check_integers", "random_product"]


class Engine:
    """The ports of a processing engine that a processor drives.

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
    instructions, segments, pages : Source
    registers : Registers
    sizes : PeSizes
        As the registers show them, after :meth:`start`.
    faults : list of Fault
        Of all instructions that had an error, in program order.
    halts : int
        Halts that were performed.
    """

    def __init__(self, ports, master, rng, pauses, base=0):
        self.ports = ports
        self.instructions = Source(ports, "instructions", INSTRUCTION, rng, pauses.streams)
        self.segments, self.pages = (
            Source(ports, name, indexed_word(len(ports[f"{name}_payload"]), bits), rng, pauses.streams)
            for name, bits in (("segments", 256), ("pages", 64))
        )
        self.registers = Registers(master, PE_REGISTERS, base)
        self.faults = []
        self.halts = 0

    async def start(self):
        """Reads the sizes of the engine; after the first reset."""
        values = {}
        for number in range(3):
            values |= await self.registers.fields(f"params{number}")
        values["types"] = [family for bit, family in enumerate(MM_FAMILIES) if values["types"] >> bit & 1]
        self.sizes = PeSizes(**{name: values[name] for name in PeSizes.__annotations__})
        cocotb.start_soon(self._watch())

    def withdraw(self):
        """Takes back what was not accepted, at the beginning of a reset."""
        for source in (self.instructions, self.segments, self.pages):
            source.withdraw()

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
        for _ in range(cycles):
            if self.halts > before:
                return
            await RisingEdge(self.ports["clk"])
        raise TimeoutError(f"the program has not ended after {cycles} cycles")

    async def error_record(self):
        """The error record as the registers show it, and their count of errors; both are cleared."""
        error = await self.registers.fields("error")
        threads = await self.registers.fields("error_threads")
        number = await self.registers.read("error_number")
        count = await self.registers.read("error_count")
        await self.registers.write("control", clear_error=1)
        return Fault(PeError(error["code"]), number, threads["first"], threads["last"], error["register"]), count

    async def _watch(self):
        """Collects faults and halts; never returns."""
        clk, valid, record, halted = (self.ports[name] for name in ("clk", "fault_valid", "fault", "halted"))
        layout = fault(len(record))
        while True:
            await RisingEdge(clk)
            if self.ports.in_reset:
                continue
            self.halts += int(halted.value)
            if int(valid.value):
                values = layout.unpack(int(record.value))
                if values["code"]:
                    self.faults.append(Fault(**values | {"code": PeError(values["code"])}))


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
