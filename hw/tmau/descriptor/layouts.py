"""Payloads of the descriptor cache: commands with their checked descriptors or faults, and the dimensions of these."""

from amaranth.hdl import Cat, Const, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES

from ...lib.component import Port
from ...lib.layouts import command_layout

__all__ = ["AskedLayout", "CheckedLayout", "DerivedLayout", "FaultLayout", "ListSignature", "ListedLayout",
           "LookupLayout", "aligned"]  # fmt: skip


def aligned(params, value):
    """An address of a checked descriptor, or a stride above dimension 0, with its known zeros if it must be aligned."""
    low = CHUNK_BYTES.bit_length() - 1
    return value if params.has("unaligned") else Cat(Const(0, low), value[low:])


class CheckedLayout(data.StructLayout):
    """A descriptor that breaks no rule, with all numbers that do not depend on coordinates.

    A *unit* is the element of dimension 0, or with interleave a slice. Numbers of single dimensions are in
    :class:`ListedLayout`.
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
                "gather": unsigned(1),  # each unit of dimension 0 is a run
                "bytes": unsigned(length),  # of the transfer
                "contiguous": data.ArrayLayout(
                    1, 4
                ),  # dimension k + 1 continues dimension k without a gap in either memory
                "gapless": unsigned(1),  # rows are contiguous in shared memory
                "gap": unsigned(8),  # bytes of shared memory between rows
                "footprint": unsigned(length),  # bytes from the first row to the end of the last row's pitch
                "too_large": unsigned(1),  # the footprint exceeds shared memory; other products may have wrapped
                "pixels": unsigned(10),  # as stored: pixels minus one
                "store_corner": corner,  # im2col: the first corner outside the tensor; stores do not allow one
                "last": unsigned(params.addr_width),  # address of the tensor's last byte
                "beyond": unsigned(1),  # it does not fit ``addr_width``
                "swizzle": unsigned(2),
                "fill": unsigned(32),  # pattern
            }
        )


class ListedLayout(data.StructLayout):
    """Numbers of one dimension of a checked descriptor.

    In tile mode dimensions have the numbers of the descriptor. In im2col mode C, or the slice with interleave, is 0,
    and W, H, D and N are 1 to 4; a missing spatial dimension has one position.
    """

    #: Members that come directly from the descriptor, and products of the previous dimensions.
    AXIS, ROW = ("size", "stride", "traversal", "low", "high"), ("count", "bytes")

    def __init__(self, params):
        corner = params.has("im2col")
        super().__init__(
            {
                "size": unsigned(32),  # as stored: elements minus one
                "stride": unsigned(min(40, params.addr_width)),  # bytes
                "traversal": unsigned(3 if params.strides_over else 0),  # as stored: step minus one; 0 if ignored
                # For W, H and D in im2col mode: lower corner, and end of the bounding box: size plus upper corner.
                "low": signed(16) if corner else unsigned(0),
                "high": signed(34) if corner else unsigned(0),
                "count": unsigned(9),  # tile: indices of a command; im2col: number of channels, for number 0 only
                "bytes": unsigned(_length(params)),  # of a unit, times the counts up to this one
            }
        )


class DerivedLayout(data.StructLayout):
    """Dimensions of a descriptor, member by member: AXIS of one dimension, ROW of another (``ListedLayout``)."""

    def __init__(self, params):
        super().__init__(
            {
                "listed": ListedLayout(params),
                "axis_stb": unsigned(1),  # ``listed`` has the members AXIS of dimension ``axis``
                "axis": unsigned(3),
                "row_stb": unsigned(1),  # ``listed`` has the members ROW of dimension ``row``
                "row": unsigned(3),
            }
        )


def _length(params):
    """Bits of a number of bytes of shared memory."""
    return params.smem.addr_width + 1


class AskedLayout(data.StructLayout):
    """Fields of missing features that are not zero in a descriptor (docs/tmau.md, "Features")."""

    def __init__(self):
        names = ("mode", "interleave", "swizzle", "unaligned", "gather0", "traversal0", "traversal")
        super().__init__({name: unsigned(1) for name in names})


class FaultLayout(data.StructLayout):
    """Fault of a command: an error record without tag and address."""

    def __init__(self):
        super().__init__({"code": unsigned(8), "field": unsigned(8)})


class LookupLayout(data.StructLayout):
    """A command with its descriptor."""

    def __init__(self, params):
        super().__init__(
            {
                "command": command_layout(),
                "checked": CheckedLayout(params),  # defined for a command on a tensor without fault
                "fault": FaultLayout(),  # fault that is already known
            }
        )


class ListSignature(Port):
    """Reads of dimensions of the current descriptor, as the reader sees them."""

    def __init__(self, params):
        super().__init__(
            {
                "look": Out(1),  # Strobe: read another dimension. Dimension 0 comes with the descriptor.
                "number": Out(3),
                "listed": In(ListedLayout(params)),  # Valid from the next cycle until the next strobe.
            }
        )
