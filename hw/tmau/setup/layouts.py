"""Payloads between the parts of setup."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from ...lib.layouts import command_layout

__all__ = ["DimensionLayout", "MeasuredLayout", "PlaceLayout", "ShapeLayout", "SidesLayout", "StridesLayout"]


class DimensionLayout(data.StructLayout):
    """One dimension of a command on a tensor.

    Numbers are those of the walk, so that 1 to 3 are W, H, D in im2col mode. There the spatial dimensions come again,
    after all of them have come once, for the way from the start to the lower corner.
    """

    def __init__(self, params):
        super().__init__(
            {
                "number": unsigned(3),  # 0 to 4
                "again": unsigned(1),
                "first": unsigned(1),  # of the command
                "last": unsigned(1),
                "position": signed(34),  # coordinate plus offset; ``again``: lower corner minus coordinate
                "stride": unsigned(min(40, params.addr_width)),  # bytes
                "size": unsigned(32),  # elements of the tensor minus one
                "traversal": unsigned(3),  # step minus one
                "count": unsigned(9),  # indices
                "bytes": unsigned(params.smem.addr_width + 1),  # of a run of this dimension and those inside it
                "contiguous": unsigned(1),  # continues the dimension before without a gap
                "low": signed(18),  # im2col: corners of the bounding box, with the offset
                "high": signed(35),
            }
        )


class SidesLayout(data.StructLayout):
    """A LANES command with what the rules compare."""

    def __init__(self, params):
        self.bits = max(params.addr_width, 32)  # of an address, in global or in shared memory
        super().__init__(
            {
                "command": command_layout(),
                "tensor": StridesLayout(params),  # in global memory
                "source": StridesLayout(params),
                "destination": StridesLayout(params),
                # First byte behind it, in each lane or in global memory, less what the first one has above ``bits``.
                "source_end": unsigned(self.bits + 1),
                "destination_end": unsigned(self.bits + 1),
            }
        )


class ShapeLayout(data.StructLayout):
    """A tensor and the lanes that it is to lie in. Global memory is one lane, from lane 0 on, compact."""

    def __init__(self):
        super().__init__(
            {
                "sizes": data.ArrayLayout(16, 4),  # W H C N, elements minus one
                "element_log2": unsigned(2),  # log2 of the element's bytes
                "lanes_log2": unsigned(4),
                "eu_log2": unsigned(4),  # log2 of ``eu_bytes``
                "start_lane": unsigned(8),
                "layout": unsigned(2),  # spec.LaneLayout; GLOBAL and COMPACT are the same here
            }
        )


class StridesLayout(data.StructLayout):
    """Distances in bytes, in one lane."""

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "row": unsigned(length),  # from row to row
                "channel": unsigned(length),  # from channel to channel of the same lane
                "batch": unsigned(length),  # from batch to batch
                "bytes": unsigned(length),  # that a lane needs
                "too_large": unsigned(1),  # more than shared memory has; the others mean nothing
            }
        )


class MeasuredLayout(data.StructLayout):
    """A command with what the rules compare."""

    def __init__(self, params):
        # Bits that count of where a block begins, and of its size. Without windows, and what changes descriptors, that
        # is what the size of shared memory needs: larger sizes are refused, and larger addresses lie behind it anyhow.
        whole = params.has("windows") or params.has("reductions_global")
        self.bits = max(params.addr_width, 32) if whole else params.smem.addr_width + 1
        super().__init__(
            {
                "command": command_layout(),
                # Last byte, or that of the descriptor, less what the first one has above ``bits`` bits; an empty block
                # ends before it begins.
                "source_last": signed(self.bits + 2),
                "destination_last": signed(self.bits + 2),
                # In units of 16 bytes, which all are aligned to, or are refused before; modulo 2^addr_width bytes, as
                # addresses are.
                "ahead": unsigned(params.addr_width - 4),  # of the destination, from the source on
                "behind": unsigned(params.addr_width - 4),
                "place": PlaceLayout(),
            }
        )


class PlaceLayout(data.StructLayout):
    """Bits of a descriptor that an element of a field takes: all in one of its 64-bit words."""

    def __init__(self):
        super().__init__(
            {
                "no_field": unsigned(1),  # there is no field of this number; the others mean nothing
                "no_index": unsigned(1),  # the field has no such element
                "word": unsigned(4),  # number of the 64-bit word in the descriptor
                "lsb": unsigned(6),  # first bit in it
                "ones": unsigned(64),  # a one for each bit of the element, from bit 0 on
            }
        )
