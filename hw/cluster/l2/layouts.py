"""What passes between the blocks of the cache."""

from amaranth.hdl import unsigned
from amaranth.lib import data, enum

__all__ = [
    "AccessLayout",
    "EntryLayout",
    "FillWordLayout",
    "ForgetLayout",
    "Kind",
    "LinePartLayout",
    "QuickLayout",
    "VictimLayout",
]


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
    """An access that has been looked up, to be carried out behind those before it."""

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
