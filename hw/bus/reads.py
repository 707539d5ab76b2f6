"""What passes between those that read memory and the AXI4 read port: ranges, bursts, and the words that come."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["NO_TAG", "BurstLayout", "DescriptorWordLayout", "RangeLayout", "ReadWordLayout"]

#: The shape of a tag that says nothing.
NO_TAG = unsigned(0)


class RangeLayout(data.StructLayout):
    """Adjoining bus words; ``tag`` is what their bursts take over."""

    def __init__(self, word_width, count_width, tag=NO_TAG):
        super().__init__(
            {
                "word": unsigned(word_width),  # address of the first, in bus words
                "beyond": unsigned(count_width),  # words behind the first
                "tag": tag,
            }
        )


class BurstLayout(data.StructLayout):
    """One legal INCR burst."""

    def __init__(self, word_width, tag=NO_TAG):
        super().__init__(
            {
                "word": unsigned(word_width),  # address of the first beat, in bus words
                "beats_minus_one": unsigned(8),
                "tag": tag,  # of the range that it is a part of
            }
        )


class ReadWordLayout(data.StructLayout):
    """A bus word of data as it comes back."""

    def __init__(self, addr_width, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(addr_width),  # byte address of the word
            }
        )


class DescriptorWordLayout(data.StructLayout):
    """A bus word of a descriptor as it comes back."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "last": unsigned(1),  # of the descriptor
            }
        )
