"""Jobs: what setup sends to dispatch for one transfer, with the walk that makes its runs."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from .layouts import TransferLayout, delivery_members, owner_members, prefetch_members

__all__ = ["BlockJobLayout", "IntervalLayout", "JobLayout", "PixelWalkLayout", "WalkLayout", "as_job"]

#: Members of a transfer that a block has, too. Blocks have no gaps, no swizzle and no rounding.
_BLOCK = ("tag", "quiet", "signal", "barrier", "smem", "fill", "immediate", "loop", "stage", "reduction", "element",
          "bytes")  # fmt: skip


class IntervalLayout(data.StructLayout):
    """Indices inside the tensor: ``first <= i < end``; none if ``first >= end``."""

    def __init__(self):
        super().__init__({"first": unsigned(9), "end": unsigned(9)})


class WalkLayout(data.StructLayout):
    """A walk over the runs of a box, for the tile walker.

    There are five levels, one per dimension, innermost first. Level 0 has one index unless dimension 0 is gathered.
    Dimensions that are folded into the run have no level of their own; unused levels have one index.

    With ``folds`` level 1 has one index for all runs before the tensor, if there are any, and one for all runs after
    it. ``before``, ``behind`` and ``level_bytes`` are lengths in shared memory, without gaps.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "store": unsigned(1),  # the runs are for the store path
                "loop": unsigned(1),  # the load path gets its words from the store path
                # Global address of the inside part of the first run, whether that is inside or not; with ``folds`` of
                # the first run of level 1 that is not before the tensor.
                "origin": unsigned(params.addr_width),
                "data_bytes": unsigned(length),  # bytes of that part
                "folds": unsigned(1),
                "before": unsigned(length),  # bytes of level 1 before the tensor
                "behind": unsigned(length),
                "level_bytes": unsigned(length),  # bytes of the whole level
                "strides": data.ArrayLayout(params.addr_width, 5),  # bytes from index to index: stride times traversal
                "lasts": data.ArrayLayout(8, 5),  # last index of each level
                "intervals": data.ArrayLayout(IntervalLayout(), 5),  # indices inside the tensor
                "outside": unsigned(1),  # the whole box is outside
                **prefetch_members(params),
            }
        )


class PixelWalkLayout(data.StructLayout):
    """A walk over the pixels of an im2col transfer (docs/tmau.md, "Im2col mode").

    Dimensions are W, H, D, N; a missing spatial dimension has one position, 0. Positions, ``lows`` included, are
    coordinates plus the offset.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        # The pixels of a line are contiguous in both memories, inside with all channels, and less than a bus word.
        folds = {"folds": unsigned(1)} if params.folds_pixels else {}
        super().__init__(
            folds
            | {
                "store": unsigned(1),  # the runs are for the store path
                "data_bytes": unsigned(length),  # bytes of a pixel's part inside the tensor
                "outside": unsigned(1),  # all channels are outside
                # Global address of the inside part of the pixel at the start, with dimensions below d at ``low``.
                "origins": data.ArrayLayout(params.addr_width, 4),
                "strides": data.ArrayLayout(params.addr_width, 4),  # bytes a step: stride times traversal
                "starts": data.ArrayLayout(signed(34), 4),  # position of the first pixel; N: its coordinate
                "lows": data.ArrayLayout(signed(18), 3),  # first position of a round
                # The first position that is the last of its round: the end of the round minus a step.
                "turns": data.ArrayLayout(signed(36), 3),
                "steps": data.ArrayLayout(3, 4),  # traversal minus one
                "sizes": data.ArrayLayout(32, 4),  # elements of the tensor minus one
                "last": unsigned(10),  # number of pixels minus one
                **prefetch_members(params),
            }
        )


class JobLayout(data.StructLayout):
    """One transfer with its walk; with ``prefetch`` only the walk is used."""

    def __init__(self, params):
        super().__init__(
            {
                "transfer": TransferLayout(params),
                "store": unsigned(1),  # for the store path, otherwise for the load path
                "im2col": unsigned(1),  # walked by ``pixels``, otherwise by ``walk``
                "walk": WalkLayout(params),
                "pixels": PixelWalkLayout(params),
                **prefetch_members(params),
            }
        )


class BlockJobLayout(data.StructLayout):
    """A transfer of contiguous bytes. Its walk is one run, which is inside."""

    def __init__(self, params):
        transfer = TransferLayout(params)
        super().__init__(
            {
                **{name: transfer[name].shape for name in _BLOCK},
                **delivery_members(params),
                **prefetch_members(params),
                **owner_members(params),
                "store": unsigned(1),  # for the store path, otherwise for the load path
                "address": unsigned(params.addr_width),  # in global memory; zero with ``loop``
                "size": unsigned(params.smem.addr_width + 1),  # bytes, at least 1
                # Destination address of a copy within one memory, which Exchange cuts into pieces.
                "target": unsigned(max(params.addr_width, params.smem.addr_width)),
            }
        )


def as_job(job, block):
    """Assignments that convert a block into a job, whose other members must be zero.

    Parameters
    ----------
    job : View of JobLayout
    block : View of BlockJobLayout
    """
    walk, transfer = job.walk, job.transfer
    prefetch = [job.prefetch, walk.prefetch] if "prefetch" in block.shape().members else []
    common = [name for name, _ in block.shape() if name in transfer.shape().members]
    return [
        job.store.eq(block.store),
        walk.store.eq(block.store),
        walk.loop.eq(block.loop & ~block.store),
        walk.origin.eq(block.address),
        walk.data_bytes.eq(block.size),
        *(interval.end.eq(1) for interval in walk.intervals),
        *(transfer[name].eq(block[name]) for name in common),
        *(member.eq(block.prefetch) for member in prefetch),
        transfer.run_bytes.eq(block.size),
        transfer.data_end.eq(block.size),
    ]
