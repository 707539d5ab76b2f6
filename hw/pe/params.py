"""Parameters of the processing engine, and the named presets."""

from dataclasses import dataclass, field, replace

from tilewright.spec import BANKS
from tilewright.spec.arithmetic import UNITS, units_of
from tilewright.spec.pe import MM_FAMILIES, families

from ..lib.parameters import check_sizes
from ..smem.params import SmemParams

__all__ = ["LANES", "PE_PRESETS", "PeParams"]

#: Threads whose addresses are computed, and chunks of shared memory that are read, in parallel.
LANES = BANKS

_RANGES = {
    "threads": (4, 256),
    "regs": (16, 512),
    "factor_regs": (1, 2),
    "uniform_regs": (8, 16),
    "segments": (2, 64),
    "pages": (2, 4096),
    "mm_in_flight": (2, 16),
    "kernel_words": (16, 4096),
    "lookup_words": (256, 1024),
}
_POWERS = {"segments", "pages", "mm_in_flight", "kernel_words", "lookup_words"}


@dataclass(frozen=True)
class PeParams:
    """Sizes of one processing engine.

    Attributes
    ----------
    threads : int
        Rows of C, each with a dot-product unit, 4 to 256.
    regs : int
        Registers of 32 bits of a thread, 16 to 512, even.
    factor_regs : int
        F: registers of A that one issue multiplies, 1 or 2. A dot-product unit has 4·F multipliers of 8 bits.
    uniform_regs : int
        Uniform registers, 8 to 16.
    segments : int
        Entries of the segment table, 2 to 64, a power of two.
    pages : int
        Entries of the page table, 2 to 4096, a power of two.
    mm_in_flight : int
        MM instructions between issue and their end, 2 to 16, a power of two. One takes about 50 cycles; with sixteen
        in flight, four steps each suffice to keep the array busy.
    types : tuple of str
        Types that MM multiplies, one or more of ``i8``, ``i16`` (integers of 8 and 16 bits), ``f16`` and ``bf16``. The
        exactly rounded sums of floats are by far the largest part of an engine.
    dsp_adders : bool
        Without floats: whether the DSP blocks of the device have a 48-bit adder after the multiplier. Those of AMD do,
        those of Lattice do not. It affects size and latency, not results.
    units : tuple of str
        Units of the arithmetic: ``alu`` (integers, kernels), ``div`` (division), ``f32`` (floats) and ``lookup`` (a
        memory of entries by index). The last three need ``alu``. Without units there is no arithmetic.
    kernel_words : int
        Instructions in the instruction memory, 16 to 4096, a power of two. It is built with ``alu``.
    lookup_words : int
        Entries of the lookup memory of each thread, 256 to 1024, a power of two.
    smem : SmemParams
        The shared memory that holds the operands.
    """

    threads: int = 16
    regs: int = 320
    factor_regs: int = 2
    uniform_regs: int = 8
    segments: int = 16
    pages: int = 256
    mm_in_flight: int = 16
    types: tuple[str, ...] = MM_FAMILIES
    dsp_adders: bool = True
    units: tuple[str, ...] = UNITS
    kernel_words: int = 512
    lookup_words: int = 512
    smem: SmemParams = field(default_factory=SmemParams)

    def __post_init__(self):
        check_sizes(self, _RANGES, _POWERS)
        if self.regs % 2:
            raise ValueError(f"regs must be even, not {self.regs!r}")
        object.__setattr__(self, "types", families(self.types))
        object.__setattr__(self, "units", units_of(self.units))
        if not isinstance(self.dsp_adders, bool):
            raise TypeError(f"dsp_adders must be a bool, not {self.dsp_adders!r}")
        if not isinstance(self.smem, SmemParams):
            raise TypeError(f"smem must be SmemParams, not {self.smem!r}")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def floats(self):
        """Whether MM multiplies floats of any type."""
        return "f16" in self.types or "bf16" in self.types

    @property
    def kernel_width(self):
        """Bits of the index of an instruction in instruction memory."""
        return (self.kernel_words - 1).bit_length()

    @property
    def groups(self):
        """Groups of :data:`LANES` threads; the last one may have fewer."""
        return -(-self.threads // LANES)

    @property
    def group_width(self):
        """Bits of the number of a group."""
        return max(1, (self.groups - 1).bit_length())

    @property
    def thread_width(self):
        """Bits of the number of a thread."""
        return (self.threads - 1).bit_length()

    @property
    def reg_width(self):
        """Bits of the number of a register in the file."""
        return (self.regs - 1).bit_length()

    @property
    def unit_bytes(self):
        """Bytes of A, and of a column, that one dot-product unit multiplies in a cycle."""
        return 4 * self.factor_regs

    @property
    def unit_bits(self):
        return 8 * self.unit_bytes

    @property
    def paced(self):
        """Whether an access takes two cycles of shared memory, with ``smem.chunks_a_cycle`` of 4. Stages of the loading
        side then accept an access every other cycle, and have no combinational path from ``ready`` to ``ready``.
        """
        return self.smem.paced

    @property
    def segment_width(self):
        """Bits of the number of a segment."""
        return (self.segments - 1).bit_length()

    @property
    def page_width(self):
        """Bits of the number of a page entry."""
        return (self.pages - 1).bit_length()

    @property
    def chunk_width(self):
        """Bits of the address of a chunk of 16 bytes in shared memory."""
        return self.smem.addr_width - 4


PE_PRESETS = {
    "unit": PeParams(threads=4, regs=32, segments=8, pages=32, mm_in_flight=2, kernel_words=64, lookup_words=256,
                     smem=SmemParams(16 * 1024)),
    "ecp5": PeParams(threads=8, regs=128, segments=8, pages=64, types=("i8", "i16"), dsp_adders=False,
                     units=("alu", "div", "lookup"), smem=SmemParams(32 * 1024, chunks_a_cycle=4, writes_a_cycle=2)),
    "default": PeParams(),
    #: Products of integers only.
    "lean": PeParams(types=("i8", "i16"), units=()),
    "full": PeParams(threads=256, segments=32, pages=1024, smem=SmemParams(256 * 1024)),
}  # fmt: skip
