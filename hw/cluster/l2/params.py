"""Parameters of the second-level cache, and the sizes that its blocks share."""

from dataclasses import dataclass, replace

from amaranth.utils import exact_log2

from ...lib.sizes import check_sizes

__all__ = ["Geometry", "L2Params"]

#: Of every cache that a user may ask for; blocks take others too, for their proofs.
_LINE_BYTES = 128
_RANGES = {"bytes": (1024, 1 << 24), "ways": (1, 16), "misses": (32, 128)}


@dataclass(frozen=True)
class L2Params:
    """Sizes of the cache between the memory side of a cluster and its port.

    Attributes
    ----------
    bytes : int
        Data it holds, 1 KiB to 16 MiB, a power of two. There are at least two sets.
    ways : int
        Lines of 128 bytes that may lie in each set, 1 to 16, a power of two.
    misses : int
        Lines that memory may have been asked for, 32 to 128, a power of two. A latency of n cycles is hidden if so many
        lines have n bus words.
    """

    bytes: int = 256 * 1024
    ways: int = 8
    misses: int = 64

    def __post_init__(self):
        check_sizes(self, _RANGES, set(_RANGES))
        if self.bytes < 2 * self.ways * _LINE_BYTES:
            raise ValueError(f"{self.ways} ways need {2 * self.ways * _LINE_BYTES} bytes, not {self.bytes!r}")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    def geometry(self, addr_width, data_width, id_width):
        """The :class:`Geometry` on a bus."""
        return Geometry(
            addr_width=addr_width,
            data_width=data_width,
            id_width=id_width,
            sets=self.bytes // (self.ways * _LINE_BYTES),
            ways=self.ways,
            misses=self.misses,
        )


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """What the blocks of the cache are built for; every size is a power of two.

    Attributes
    ----------
    addr_width, data_width, id_width : int
        Of the bus that requests come from.
    sets, ways : int
        At least 2, and at least 1.
    misses : int
        Lines that memory may have been asked for, at least 2.
    line_bytes : int
        At least two bus words, and no more than a page of 4 KiB.
    """

    addr_width: int
    data_width: int
    id_width: int
    sets: int
    ways: int
    misses: int
    line_bytes: int = _LINE_BYTES

    @property
    def line_log2(self):
        """Bits of a byte's place in its line."""
        return exact_log2(self.line_bytes)

    @property
    def line_width(self):
        """Bits of the number of a line."""
        return self.addr_width - self.line_log2

    @property
    def words(self):
        """Bus words of a line."""
        return 8 * self.line_bytes // self.data_width

    @property
    def word_log2(self):
        """Bits of a word's place in its line."""
        return exact_log2(self.words)

    @property
    def set_log2(self):
        """Bits of the number of a set: the lowest ones of that of a line."""
        return exact_log2(self.sets)

    @property
    def way_log2(self):
        """Bits of the number of a way."""
        return exact_log2(self.ways)

    @property
    def place_width(self):
        """Bits of the place of a line in the cache: way and set."""
        return self.set_log2 + self.way_log2

    @property
    def tag_width(self):
        """Bits of a line's number that do not tell its set."""
        return self.line_width - self.set_log2

    @property
    def entries(self):
        """Accesses to lines that have been looked up and not carried out."""
        return 2 * self.misses

    @property
    def number_width(self):
        """Bits of the number of such an access: more than there can be at once, twice."""
        return exact_log2(self.entries) + 1
