"""How a job is cut for the convolution engine, and what that costs (docs/conv.md, "From a kernel to rows")."""

from dataclasses import dataclass
from math import ceil

from ..spec.conv.params import CHANNELS_AT_ONCE, ConvParams
from .granularity import granularities, seed_granularity
from .shape import ConvShape

__all__ = ["ConvPlan", "most_steps", "plan_convolution"]

#: Bytes of shared memory that are read, and written, in a cycle.
_MEMORY_BYTES = 128
#: Pieces that are asked for at once, and their bytes.
_PIECES, _PIECE_BYTES = 8, 16
_RULES = ("cost", "seed")


def most_steps(params, fold, dilation=1):
    """Kmax: steps along kw for which the first buffer holds rows of adjoining points."""
    return (params.feature_rows - params.units) * fold // dilation + 1


@dataclass(frozen=True)
class ConvPlan:
    """A shape on an engine, cut in one way.

    Attributes
    ----------
    shape : ConvShape
    params : ConvParams
    block_bytes : int
        pci: bytes of a block of channels.
    merge : int
        g: kernel columns that are taken as one pixel.
    raster : bool
        Point tiles go on across the ends of lines.
    """

    shape: ConvShape
    params: ConvParams
    block_bytes: int
    merge: int = 1
    raster: bool = False

    def __post_init__(self):
        shape, params = self.shape, self.params
        if self.block_bytes not in granularities(params.row_bytes) or self.block_bytes < shape.element_bytes:
            raise ValueError(f"block_bytes cannot be {self.block_bytes!r} in rows of {params.row_bytes} bytes")
        if self.merge != 1 and (shape.operation.lanes or shape.dilation[0] != 1 or not shape.adjoin):
            raise ValueError(f"merge must be 1 for {shape.operation.name}, not {self.merge!r}, unless elements adjoin")

    @property
    def fold(self):
        """ws: points that share a row."""
        return self.params.row_bytes // self.block_bytes

    @property
    def pixel_bytes(self):
        """c: bytes of what is taken as one pixel."""
        return self.merge * self.shape.channels * self.shape.element_bytes

    @property
    def blocks(self):
        """bci: blocks of a pixel."""
        return ceil(self.pixel_bytes / self.block_bytes)

    @property
    def steps(self):
        """Steps along kw of a kernel row."""
        return ceil(self.shape.kernel[0] / self.merge)

    @property
    def adjoin(self):
        """Whether neighbouring points adjoin in memory, so that both buffers slide."""
        return self.shape.adjoin and self.merge == self.shape.stride[0]

    @property
    def part_steps(self):
        """Steps of the longest part of a kernel row: all of them, or Kmax."""
        return min(self.steps, most_steps(self.params, self.fold, self.shape.dilation[0]))

    @property
    def parts(self):
        """Parts of at most Kmax steps that a kernel row is split into."""
        return ceil(self.steps / self.part_steps)

    @property
    def tile_points(self):
        """Points of a tile; in lane-private mode those of a row."""
        return self.fold if self.shape.operation.lanes else self.params.units * self.fold

    @property
    def point_tiles(self):
        """Tiles of points, in lane-private mode rows."""
        shape = self.shape
        if self.raster:
            return ceil(shape.points / self.tile_points)
        return shape.lines * ceil(shape.out_width / self.tile_points)

    @property
    def slave_channels(self):
        """Output channels of a slave, aco / NS."""
        return ceil(self.shape.out_channels / self.params.slaves)

    @property
    def channel_tiles(self):
        """Tiles of output channels."""
        return ceil(self.slave_channels / CHANNELS_AT_ONCE)

    @property
    def tile_cycles(self):
        """Cycles of a point tile over all channel tiles: (aco / NS) · Kh · steps · bci."""
        return self.slave_channels * self.shape.kernel[1] * self.steps * self.blocks

    @property
    def part_cycles(self):
        """The same of the longest part of the kernel's columns alone: (aco / NS) · Kh · min(steps, Kmax) · bci."""
        return self.slave_channels * self.shape.kernel[1] * self.part_steps * self.blocks

    @property
    def mac_cycles(self):
        """Cycles in which the array multiplies, with all that is lost by rounding up."""
        if self.shape.operation.lanes:
            return self.blocks * ceil(self.point_tiles / self.params.slaves) * self.shape.taps
        return self.point_tiles * self.tile_cycles

    @property
    def fetch_cycles(self):
        """Cycles in which rows are asked for: up to 8 pieces in each, of up to 16 bytes of a block."""
        params, lanes = self.params, self.shape.operation.lanes
        pieces = (params.slaves if lanes else params.units) * params.row_bytes // min(self.block_bytes, _PIECE_BYTES)
        asked = min(_PIECES, params.units * params.row_bytes // _PIECE_BYTES)
        steps = self.shape.kernel[1] * self.steps * self.blocks
        if lanes:
            # One request more is for the row of the kernel.
            return (ceil(pieces / asked) + 1) * ceil(self.point_tiles / params.slaves) * steps
        return ceil(pieces / asked) * self.channel_tiles * self.point_tiles * steps

    @property
    def costs(self):
        """Cycles that each resource needs at least: array, post-processing, shared memory."""
        moved = max(self.shape.bytes_read, self.shape.bytes_written)
        return {
            "macs": self.mac_cycles,
            "results": ceil(self.shape.results / self.params.results),
            "bytes": ceil(moved / _MEMORY_BYTES),
        }

    @property
    def limit(self):
        """Fewest cycles of the layer."""
        return max(self.costs.values())

    @property
    def bound(self):
        """What the limit comes from."""
        costs = self.costs
        return max(costs, key=costs.get)

    @property
    def peak(self):
        """MACs of the array in a cycle, of this size of element."""
        return self.params.peak // self.shape.element_bytes

    @property
    def array_use(self):
        """MACs by what the array could do in its cycles: what rounding up leaves."""
        return self.shape.macs / (self.peak * self.mac_cycles)

    @property
    def utilisation(self):
        """MAC utilisation at the limit."""
        return self.shape.macs / (self.peak * self.limit)

    @property
    def feature_reuse(self):
        """Weight rows that a feature row serves while it stays: channels of a slave in a tile."""
        return min(self.slave_channels, CHANNELS_AT_ONCE)

    @property
    def weight_reuse(self):
        """Points that a weight row serves while it stays."""
        return self.params.units * self.fold

    @property
    def weight_rows(self):
        """Weight rows of a slave that a point tile takes, over all channel tiles: one a cycle."""
        return self.tile_cycles

    @property
    def weights_stay(self):
        """Whether a quarter of the weight memory holds the weights of a channel."""
        rows = self.shape.kernel[1] * self.steps * self.blocks
        return rows * self.block_bytes <= self.params.weight_bytes // CHANNELS_AT_ONCE


def plan_convolution(shape, params, rule="cost"):
    """A :class:`ConvPlan` of a shape.

    Parameters
    ----------
    shape : ConvShape
    params : ConvParams
    rule : "cost" or "seed"
        "cost": the fewest cycles of the array, or of what is asked for; of equal ones first those whose points adjoin,
        then fewer merged columns, then larger blocks, then tiles that end with their lines. "seed": stride removal,
        blocks by the seed's rule, tiles that end with their lines.
    """
    if rule not in _RULES:
        raise ValueError(f"rule must be one of {', '.join(_RULES)}, not {rule!r}")
    mergeable = not shape.operation.lanes and shape.dilation[0] == 1 and shape.adjoin
    if rule == "seed":
        merge = shape.stride[0] if mergeable else 1
        size = seed_granularity(merge * shape.channels * shape.element_bytes, params.row_bytes)
        return ConvPlan(shape, params, max(size, shape.element_bytes), merge)
    merges = {1, shape.stride[0], shape.kernel[0]} if mergeable else {1}
    plans = [
        ConvPlan(shape, params, size, merge, raster)
        for merge in merges
        for size in granularities(params.row_bytes)
        if size >= shape.element_bytes
        for raster in (False, True)
    ]
    return min(plans, key=_order)


def _order(plan):
    """What makes a plan come before others."""
    cycles = max(plan.mac_cycles, plan.fetch_cycles)
    return cycles, plan.mac_cycles, not plan.adjoin, plan.merge, -plan.block_bytes, plan.raster
