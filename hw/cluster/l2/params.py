"""Parameters of the second-level cache, the sizes of its blocks, and the payloads between them."""

from dataclasses import dataclass, replace

from amaranth.hdl import unsigned
from amaranth.lib import data, enum
from amaranth.utils import exact_log2

from ...lib.parameters import check_sizes

__all__ = ["AccessLayout", "EntryLayout", "FillWordLayout", "ForgetLayout", "Geometry", "Kind", "L2Params",
           "LinePartLayout", "QuickLayout", "VictimLayout"]  # fmt: skip

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
        """Bits of the number of a set, the lowest bits of the number of a line."""
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


class Kind(enum.Enum, shape=3):
    """What is to be done with a line."""

    READ = 0  #: words of it are asked for
    WRITE = 1  #: words of it are written
    PREFETCH = 2  #: it is to be here
    EXPEL = 3  #: it is to leave its place, and to be written back if that is asked for
    FORGET = 4  #: a word of it came with an error: it is not here any more
    DISCARD = 5  #: it is to leave, if it is here, and to be written back if that is asked for


class LinePartLayout(data.StructLayout):
    """What a burst has to do with one line."""

    def __init__(self, geometry):
        super().__init__(
            {
                "id": unsigned(geometry.id_width),
                "line": unsigned(geometry.line_width),
                "first": unsigned(geometry.word_log2),  # its words, the last one included
                "last": unsigned(geometry.word_log2),
                "end": unsigned(1),  # the burst has no further line
            }
        )


class AccessLayout(data.StructLayout):
    """What is to be looked up."""

    def __init__(self, geometry):
        super().__init__(
            {
                "kind": Kind,
                "part": LinePartLayout(geometry),  # EXPEL, FORGET: of it the set only
                "full": unsigned(1),  # WRITE: every byte of the line is written
                "way": unsigned(geometry.way_log2),  # EXPEL with ``keep``, FORGET
                # EXPEL: the one way, written back; otherwise all ways of the set, dropped. DISCARD: written back.
                "keep": unsigned(1),
                "born": unsigned(geometry.number_width),  # FORGET: number of the entry that brought the line
            }
        )


class EntryLayout(data.StructLayout):
    """An access that has been looked up, to be carried out after all entries before it."""

    def __init__(self, geometry):
        super().__init__(
            {
                "kind": Kind,  # but FORGET
                "fresh": unsigned(1),  # the place gets a new line
                "fills": unsigned(1),  # whose words memory has been asked for
                "evicts": unsigned(1),  # the line that was there is written back
                "victim": unsigned(geometry.line_width),  # that is this one
                "place": unsigned(geometry.place_width),
                "id": unsigned(geometry.id_width),
                "first": unsigned(geometry.word_log2),
                "last": unsigned(geometry.word_log2),
                "end": unsigned(1),
                "number": unsigned(geometry.number_width),
            }
        )


class QuickLayout(data.StructLayout):
    """A read of a line that nothing under way changes, for an ID that waits for nothing."""

    def __init__(self, geometry):
        super().__init__(
            {
                "place": unsigned(geometry.place_width),
                "id": unsigned(geometry.id_width),
                "first": unsigned(geometry.word_log2),
                "last": unsigned(geometry.word_log2),
                "end": unsigned(1),
            }
        )


class FillWordLayout(data.StructLayout):
    """A word that memory has brought."""

    def __init__(self, geometry):
        super().__init__({"data": unsigned(geometry.data_width), "failed": unsigned(1)})


class VictimLayout(data.StructLayout):
    """A word that leaves the cache."""

    def __init__(self, geometry):
        super().__init__(
            {
                "data": unsigned(geometry.data_width),
                "strb": unsigned(geometry.data_width // 8),  # its bytes that were written
                "line": unsigned(geometry.line_width),
                "first": unsigned(1),  # of its line
                "last": unsigned(1),
            }
        )


class ForgetLayout(data.StructLayout):
    """A line that came with an error."""

    def __init__(self, geometry):
        super().__init__({"place": unsigned(geometry.place_width), "born": unsigned(geometry.number_width)})
