"""What leaves the descriptor cache: a command with its checked descriptor, or with what is wrong."""

from amaranth.hdl import Cat, Const, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES

from ...lib.component import Port
from ...lib.layouts import command_layout

__all__ = ["AskedLayout", "CheckedLayout", "DerivedLayout", "FaultLayout", "ListSignature", "ListedLayout",
           "LookupLayout", "aligned"]  # fmt: skip


def aligned(params, value):
    """An address, or a stride of another dimension than 0, of a good descriptor: if it cannot be unaligned, what is
    known of it.
    """
    low = CHUNK_BYTES.bit_length() - 1
    return value if params.has("unaligned") else Cat(Const(0, low), value[low:])


class CheckedLayout(data.StructLayout):
    """A descriptor that has passed every rule, with what does not depend on coordinates worked out.

    Its *unit* is what dimension 0 counts: an element, or with interleave a slice. What each dimension has of its own is
    a :class:`ListedLayout`.
    """

    def __init__(self, params):
        length = _length(params)
        corner = data.StructLayout({"broken": unsigned(1), "upper": unsigned(1)})
        super().__init__(
            {
                "address": unsigned(64),
                "rank": unsigned(3),
                "im2col": unsigned(1),
                "interleaved": unsigned(1),
                "element": unsigned(4),  # spec.Element
                "unit_log2": unsigned(3),  # log2 of the unit's bytes
                "gather": unsigned(1),  # dimension 0 is taken unit by unit
                "bytes": unsigned(length),  # of the transfer
                "contiguous": data.ArrayLayout(1, 4),  # dimension k + 1 continues dimension k, both sides without a gap
                "gapless": unsigned(1),  # rows adjoin in shared memory
                "gap": unsigned(8),  # bytes of shared memory between rows
                "footprint": unsigned(length),  # bytes from the first row to the end of the last one's pitch
                "too_large": unsigned(1),  # the footprint is larger than shared memory; other products may have wrapped
                "pixels": unsigned(10),  # as stored: pixels minus one
                "store_corner": corner,  # im2col: the first corner outside the tensor, which stores do not allow
                "last": unsigned(params.addr_width),  # address of the tensor's last byte
                "beyond": unsigned(1),  # that does not fit ``addr_width``
                "swizzle": unsigned(2),
                "fill": unsigned(32),  # pattern
            }
        )


class ListedLayout(data.StructLayout):
    """What a dimension of a checked descriptor has of its own.

    In tile mode its number is that of the descriptor. In im2col mode C has 0, W, H, D and N have 1 to 4, where a
    spatial dimension that the tensor lacks has one position, and C is the slice with interleave.
    """

    #: Members that are known as the dimension passes, and those that are products of what the dimensions before have.
    AXIS, ROW = ("size", "stride", "traversal", "low", "high"), ("count", "bytes")

    def __init__(self, params):
        corner = params.has("im2col")
        super().__init__(
            {
                "size": unsigned(32),  # as stored: elements minus one
                "stride": unsigned(min(40, params.addr_width)),  # bytes
                "traversal": unsigned(3 if params.strides_over else 0),  # as stored: step minus one; 0 where ignored
                # Of im2col, W, H and D: lower corner; end of the bounding box, exclusive, which is size plus upper one.
                "low": signed(16) if corner else unsigned(0),
                "high": signed(34) if corner else unsigned(0),
                "count": unsigned(9),  # tile: indices that a command takes; im2col: of number 0 only, channels
                "bytes": unsigned(_length(params)),  # unit times the counts up to this one
            }
        )


class DerivedLayout(data.StructLayout):
    """Dimensions of a descriptor as they become known: of one the axis, of one the row (``ListedLayout``)."""

    def __init__(self, params):
        super().__init__(
            {
                "listed": ListedLayout(params),
                "axis_stb": unsigned(1),  # it has the members AXIS of this number
                "axis": unsigned(3),
                "row_stb": unsigned(1),  # it has the members ROW of this number
                "row": unsigned(3),
            }
        )


def _length(params):
    """Bits of bytes of shared memory."""
    return params.smem.addr_width + 1


class AskedLayout(data.StructLayout):
    """Fields of a descriptor that are not zero, of features that the hardware lacks (docs/tmau.md, "Features")."""

    def __init__(self):
        names = ("mode", "interleave", "swizzle", "unaligned", "gather0", "traversal0", "traversal")
        super().__init__({name: unsigned(1) for name in names})


class FaultLayout(data.StructLayout):
    """Why a command cannot run: an error record without tag and address."""

    def __init__(self):
        super().__init__({"code": unsigned(8), "field": unsigned(8)})


class LookupLayout(data.StructLayout):
    """A command with its descriptor."""

    def __init__(self, params):
        super().__init__(
            {
                "command": command_layout(),
                "checked": CheckedLayout(params),  # meaningful for a command on a tensor without fault
                "fault": FaultLayout(),  # what is already known to be wrong
            }
        )


class ListSignature(Port):
    """A read of one dimension of the descriptor that is shown, as the reader sees it."""

    def __init__(self, params):
        # It, from the cycle after until the next strobe.
        # Which one.
        # Strobe: another dimension is wanted. Dimension 0 comes with the descriptor, without it.
        super().__init__({"look": Out(1), "number": Out(3), "listed": In(ListedLayout(params))})
