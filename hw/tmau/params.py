"""Parameters of the tensor memory access unit, and the named presets."""

from dataclasses import dataclass, field, replace

from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.tmau_registers import FEATURES, MOST_PROCESSORS, features

from ..lib.parameters import check_sizes
from ..smem.params import SmemParams

__all__ = ["MAX_GROUPS", "TMAU_PRESETS", "TmauParams"]

_RANGES = {
    "addr_width": (16, 64),
    "bus_bytes": (16, 64),
    "max_outstanding": (4, 1024),
    "max_burst": (1, 256),
    "queue_depth": (2, 64),
    "cache_entries": (1, 64),
    "commands_in_flight": (2, 1024),
    "exchange_bytes": (128, 4096),
    "cores": (1, MOST_CORES),
    "processors": (1, MOST_PROCESSORS),
}
_POWERS = {"bus_bytes", "max_outstanding", "max_burst", "queue_depth", "cache_entries", "commands_in_flight",
           "exchange_bytes"}  # fmt: skip

#: Committed groups that may be unfinished.
MAX_GROUPS = 16


@dataclass(frozen=True)
class TmauParams:
    """Sizes of one TMAU.

    Attributes
    ----------
    addr_width : int
        Bits of a global byte address, 16 to 64. Descriptors hold 64; addresses wrap modulo 2^addr_width.
    bus_bytes : int
        Bytes of a bus word (AXI data width / 8): 16, 32 or 64.
    max_outstanding : int
        Read bursts in flight, 4 to 1024, a power of two. Their bookkeeping is one memory of this depth. Latency times
        bandwidth is hidden while ``max_outstanding`` exceeds the memory's latency in cycles by about ten.
    max_burst : int
        Bus words of a burst at most, 1 to 256, a power of two; bursts never cross 4 KiB whatever it is.
    queue_depth : int
        Commands that wait, 2 to 64, a power of two.
    cache_entries : int
        Descriptors kept, 1 to 64, a power of two. With one, the next descriptor is not fetched as long as the command
        in front is being set up.
    commands_in_flight : int
        Commands whose data are under way, 2 to 1024, a power of two; one memory of this depth. A quarter of
        ``max_outstanding`` keeps the bus busy with boxes of four words.
    exchange_bytes : int
        Bytes of a piece of a copy within one memory, 128 to 4096, a power of two. Between the load path and the store
        path four pieces are kept, of copies within shared memory and within global memory each.
    cores : int
        Cores of the cluster that the unit is part of, 1 to 16 (docs/cluster.md). 1: it is in none.
    processors : int
        Processors that share the unit, 1 to 16, each with a command port and windows of its own (docs/cluster.md,
        "Several processors").
    prefetches : bool
        The unit names the lines of a PREFETCH to a cache outside (docs/cluster.md, "L2").
    spares_tables : bool
        What can bear it lies in block memories, of which that takes more: words for the bus, runs and steps on their
        way, bursts in flight, commands, and all of a descriptor. Some stages take a cycle more, in which no word comes.
    command_window : bool
        A processor writes commands over AXI4-Lite too, word by word (docs/from_a_processor.md). Of one processor.
    barrier_window : bool
        A processor operates on barriers over AXI4-Lite too, where they lie in the design.
    features : tuple of str
        What is built, of ``spec.tmau_registers.FEATURES``: ``im2col``, ``interleave``, ``unaligned``, ``gather``,
        ``swizzle``, ``stores``, ``reductions_global``, ``reductions_shared``, ``reductions_float``, ``lanes``,
        ``local_copies``, ``windows`` and ``tf32``. Commands that need another one are refused (docs/tmau.md,
        "Features").
    smem : SmemParams
        The shared memory that loads write to.
    """

    addr_width: int = 48
    bus_bytes: int = 64
    max_outstanding: int = 128
    max_burst: int = 16
    queue_depth: int = 8
    cache_entries: int = 8
    commands_in_flight: int = 32
    exchange_bytes: int = 4096
    cores: int = 1
    processors: int = 1
    prefetches: bool = False
    spares_tables: bool = False
    command_window: bool = False
    barrier_window: bool = False
    features: tuple[str, ...] = tuple(FEATURES)
    smem: SmemParams = field(default_factory=SmemParams)

    def __post_init__(self):
        check_sizes(self, _RANGES, _POWERS)
        object.__setattr__(self, "features", features(self.features))
        for name in ("prefetches", "spares_tables", "command_window", "barrier_window"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.command_window and self.processors > 1:
            raise ValueError(f"command_window is of one processor, and processors are {self.processors}")
        if not isinstance(self.smem, SmemParams):
            raise TypeError(f"smem must be SmemParams, not {self.smem!r}")
        if self.max_burst * self.bus_bytes > 4096:
            raise ValueError(f"max_burst of {self.max_burst} words of {self.bus_bytes} bytes is longer than 4096 bytes")

    @property
    def line_words(self):
        """Bytes of the words that lines are handed to shared memory as; None for whole lines, as in a cluster."""
        return self.bus_bytes if self.cores == 1 else None

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    def has(self, feature):
        """Whether a feature is built."""
        return feature in self.features

    @property
    def window_owners(self):
        """Processors that have windows of their own; 1 if one pair of windows confines all commands."""
        return self.processors if self.has("windows") else 1

    @property
    def confines_apart(self):
        """Whether processors have windows of their own."""
        return self.window_owners > 1

    @property
    def bus_width(self):
        """Bits of a bus word."""
        return 8 * self.bus_bytes

    @property
    def bus_log2(self):
        """Bits of a byte offset in a bus word."""
        return self.bus_bytes.bit_length() - 1

    @property
    def folds_pixels(self):
        """Whether adjoining pixels are taken together; where each is a bus word, one a cycle is all there can be."""
        return self.has("im2col") and self.bus_bytes > 16

    @property
    def strides_over(self):
        """Whether a walk may step over indices: traversals other than 1."""
        return self.has("gather") or self.has("im2col")

    @property
    def keeps_lines(self):
        """Whether a line of shared memory that is stored is read once for all of its segments."""
        return self.bus_bytes > 16

    @property
    def registers_words(self):
        """Whether words lie in a register before they are rotated, and not behind: no reduction holds them up there."""
        return not self.has("reductions_shared")

    @property
    def four_inputs(self):
        """Whether rotators are made for tables of four inputs: a bus of 16 bytes is that of small devices."""
        return self.bus_bytes == 16

    @property
    def exchange_words(self):
        """Bus words between the paths in copies within shared memory, and as many in those within global memory.

        Four pieces: one is emptied while the next one is there, and two are on their way, for the latency of the store
        path or of the memory.
        """
        return 4 * self.exchange_bytes // self.bus_bytes

    @property
    def old_words(self):
        """Words that reductions into global memory have read, or asked for, and not used yet: at most so many."""
        return min(max(2 * self.max_outstanding, self.max_burst), 1024)

    @property
    def word_width(self):
        """Bits of a bus-word address."""
        return self.addr_width - self.bus_log2


def _without(*missing):
    return tuple(name for name in FEATURES if name not in missing)


TMAU_PRESETS = {
    #: The smallest legal sizes: quick to simulate, and every queue fills.
    "unit": TmauParams(addr_width=32, bus_bytes=16, max_outstanding=4, max_burst=4, queue_depth=2, cache_entries=2,
                       commands_in_flight=2, exchange_bytes=256, smem=SmemParams(4096)),
    #: A Lattice ECP5-85 beside other logic: one 16-byte DRAM word a cycle.
    "ecp5": TmauParams(addr_width=32, bus_bytes=16, max_outstanding=128, max_burst=16, queue_depth=4, cache_entries=4,
                       commands_in_flight=32, exchange_bytes=1024, features=_without("reductions_float"),
                       smem=SmemParams(32 * 1024, chunks_a_cycle=4, writes_a_cycle=2)),
    "default": TmauParams(),
    #: A mover of tiles and little else: what compares with an N-D DMA engine.
    "lean": TmauParams(spares_tables=True, features=("swizzle", "stores")),
    #: For memories 400 cycles away.
    "full": TmauParams(addr_width=64, max_outstanding=512, queue_depth=16, cache_entries=16, commands_in_flight=128,
                       smem=SmemParams(256 * 1024)),
}  # fmt: skip
