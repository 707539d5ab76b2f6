"""Jobs: what every kind of setup hands on for one transfer, and the dispatch to walkers and paths."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from .layouts import TransferLayout, delivery_members, owner_members, prefetch_members

__all__ = [
    "BlockJobLayout",
    "IntervalLayout",
    "JobLayout",
    "PixelWalkLayout",
    "WalkLayout",
    "as_job",
    "without_meaning",
]

#: Members of a transfer that a block has. It has no gaps, no swizzle and no rounding.
_BLOCK = ("tag", "quiet", "signal", "barrier", "smem", "fill", "immediate", "loop", "stage", "reduction", "element",
          "bytes")  # fmt: skip


class IntervalLayout(data.StructLayout):
    """Indices inside the tensor: ``first <= i < end``; none if ``first >= end``."""

    def __init__(self):
        super().__init__({"first": unsigned(9), "end": unsigned(9)})


class WalkLayout(data.StructLayout):
    """A walk over the runs of a box, for the tile walker.

    There are five levels, one a dimension, innermost first. Level 0 has one index unless dimension 0 is gathered. The
    dimensions that are folded into the run have no level of their own; levels at the end have one index.

    With ``folds`` level 1 has one index for all its runs before the tensor, if there are any, and one for all behind
    it. Their lengths, and that of the whole level, are in shared memory, without gaps.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "store": unsigned(1),  # the runs are for the store path
                "loop": unsigned(1),  # the load path gets its words from the store path
                # Global address of the part of the first run that is inside the tensor, or would be; with ``folds`` of
                # the first one of level 1 that is not before the tensor.
                "origin": unsigned(params.addr_width),
                "data_bytes": unsigned(length),  # bytes of that part
                "folds": unsigned(1),
                "before": unsigned(length),  # bytes of level 1 before the tensor
                "behind": unsigned(length),
                "level_bytes": unsigned(length),  # bytes of all of it
                "strides": data.ArrayLayout(params.addr_width, 5),  # bytes from index to index: stride times traversal
                "lasts": data.ArrayLayout(8, 5),  # last index of each level
                "intervals": data.ArrayLayout(IntervalLayout(), 5),  # indices inside the tensor
                "outside": unsigned(1),  # no byte of the box is inside
                # One run, which is inside: lasts, intervals and strides mean nothing.
                **({"whole": unsigned(1)} if params.spares_tables else {}),
                **prefetch_members(params),
            }
        )


class PixelWalkLayout(data.StructLayout):
    """A walk over the pixels of an im2col transfer (docs/tmau.md, "Im2col mode").

    Dimensions are W, H, D, N; a spatial dimension that the tensor does not have has one position, 0. Positions are
    coordinates with the offset added: ``cur + offset``, and so is ``low``.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        # The pixels of a line adjoin on both sides and are inside with all channels, in less than a bus word.
        folds = {"folds": unsigned(1)} if params.folds_pixels else {}
        super().__init__(
            folds
            | {
                "store": unsigned(1),  # the runs are for the store path
                "data_bytes": unsigned(length),  # bytes of a pixel's part inside the tensor
                "outside": unsigned(1),  # no channel is inside
                # Global address of that part of the pixel at the start, with dimensions below d at ``low``.
                "origins": data.ArrayLayout(params.addr_width, 4),
                "strides": data.ArrayLayout(params.addr_width, 4),  # bytes a step: stride times traversal
                "starts": data.ArrayLayout(signed(34), 4),  # position of the first pixel; N: its coordinate
                "lows": data.ArrayLayout(signed(18), 3),  # first position of a round
                # A position from here on is the last one of its round: the end of the round less a step.
                "turns": data.ArrayLayout(signed(36), 3),
                "steps": data.ArrayLayout(3, 4),  # traversal minus one
                "sizes": data.ArrayLayout(32, 4),  # elements of the tensor minus one
                "last": unsigned(10),  # pixels minus one
                **prefetch_members(params),
            }
        )


class JobLayout(data.StructLayout):
    """One transfer with its walk; with ``prefetch`` a walk only."""

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
    """One transfer of adjoining bytes. Its walk is one run that is inside."""

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
                # Of a copy within one memory, which Exchange cuts in pieces: address to copy to.
                "target": unsigned(max(params.addr_width, params.smem.addr_width)),
            }
        )


def without_meaning(params):
    """Names of members of a block's job that no stage looks at: its walk has one run, and all of that is inside.

    Returns
    -------
    dict of str to tuple of str
        By members of ``JobLayout``.
    """
    fill = () if params.has("reductions_global") else ("fill",)  # of a REPLACE it is what is written
    walk = ("before", "behind", "level_bytes", "strides", "lasts", "intervals")
    return {"walk": walk, "transfer": ("gap", *fill)}


def as_job(job, block):
    """Assignments that make ``job``, a view of JobLayout that is otherwise zero, what ``block`` says.

    Parameters
    ----------
    job : View of JobLayout
    block : View of BlockJobLayout
    """
    walk, transfer = job.walk, job.transfer
    whole = [walk.whole.eq(1)] if "whole" in walk.shape().members else []
    prefetch = [job.prefetch, walk.prefetch] if "prefetch" in block.shape().members else []
    kept = [name for name, _ in block.shape() if name in transfer.shape().members]
    return [
        job.store.eq(block.store),
        walk.store.eq(block.store),
        walk.loop.eq(block.loop & ~block.store),
        walk.origin.eq(block.address),
        walk.data_bytes.eq(block.size),
        *(interval.end.eq(1) for interval in walk.intervals),
        *(transfer[name].eq(block[name]) for name in kept),
        *whole,
        *(named.eq(block.prefetch) for named in prefetch),
        transfer.run_bytes.eq(block.size),
        transfer.data_end.eq(block.size),
    ]
