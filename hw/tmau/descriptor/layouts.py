"""What leaves the descriptor cache: a command with its checked descriptor, or with what is wrong."""

from amaranth import Cat, Const, signed, unsigned
from amaranth.lib import data

from tilewright.golden.spec import CHUNK_BYTES

from ...bus.commands import command_layout

__all__ = ["AskedLayout", "CheckedLayout", "FaultLayout", "LookupLayout", "aligned"]


def aligned(params, value):
    """An address, or a stride of another dimension than 0, of a good descriptor: if it cannot be unaligned, what is
    known of it.
    """
    low = CHUNK_BYTES.bit_length() - 1
    return value if params.has("unaligned") else Cat(Const(0, low), value[low:])


class CheckedLayout(data.StructLayout):
    """A descriptor that has passed every rule, with what does not depend on coordinates worked out.

    Its *unit* is what dimension 0 counts: an element, or with interleave a slice. Sizes, strides and traversals are in
    the order of ``derive.walk_order``.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        corner = data.StructLayout({"broken": unsigned(1), "upper": unsigned(1)})
        super().__init__(
            {
                "address": unsigned(64),
                "rank": unsigned(3),
                "im2col": unsigned(1),
                "interleaved": unsigned(1),
                "element": unsigned(4),  # golden.spec.Element
                "unit_log2": unsigned(3),  # log2 of the unit's bytes
                "gather": unsigned(1),  # dimension 0 is taken unit by unit
                "sizes": data.ArrayLayout(32, 5),  # as stored: elements minus one
                "strides": data.ArrayLayout(min(40, params.addr_width), 5),  # bytes
                "traversals": data.ArrayLayout(3, 5),  # as stored: step minus one; 0 where ignored
                "counts": data.ArrayLayout(9, 5),  # tile: indices that a command takes; im2col: [0] only, channels
                "run_bytes": data.ArrayLayout(length, 5),  # unit times counts[0] … counts[k]; [4] is the transfer
                "contiguous": data.ArrayLayout(1, 4),  # dimension k + 1 continues dimension k, both sides without a gap
                "gapless": unsigned(1),  # rows adjoin in shared memory
                "gap": unsigned(8),  # bytes of shared memory between rows
                "footprint": unsigned(length),  # bytes from the first row to the end of the last one's pitch
                "too_large": unsigned(1),  # the footprint is larger than shared memory; other products may have wrapped
                "pixels": unsigned(10),  # as stored: pixels minus one
                "lows": data.ArrayLayout(signed(16), 3),  # im2col: lower corner W, H, D
                "highs": data.ArrayLayout(signed(34), 3),  # end of the bounding box, exclusive: size plus upper corner
                "store_corner": corner,  # im2col: the first corner outside the tensor, which stores do not allow
                "last": unsigned(params.addr_width),  # address of the tensor's last byte
                "beyond": unsigned(1),  # that does not fit ``addr_width``
                "swizzle": unsigned(2),
                "fill": unsigned(32),  # pattern
            }
        )


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
