"""Plans of convolutions: blocks of channels, tiles of points, and the cycles that they cost (docs/conv.md)."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from tilewright.spec.conv import CHANNELS_AT_ONCE, KERNEL_ROWS, ConvOperation, ConvParams
from tilewright.spec.names import suggestion

from ..arguments import instance, integer, power_of_two, shown
from .shape import ConvShape

__all__ = ["ConvPlan", "convolution_plans", "granularities", "most_steps", "plan_convolution", "seed_granularity"]

#: Fewer bytes of padding than these are accepted for larger blocks.
_ACCEPTED = 16
#: Bytes of shared memory that are read, or written, in a cycle.
_MEMORY_BYTES = 128
_RULES = ("cost", "fetch", "seed")


def granularities(row_bytes):
    """Sizes in bytes that blocks in rows of ``row_bytes`` can have, the largest first."""
    return tuple(row_bytes >> shift for shift in range(5) if row_bytes >> shift)


def seed_granularity(size, row_bytes=64):
    """Bytes of a block for a pixel of ``size`` bytes, in rows of ``row_bytes``, by the seed's rule.

    It is the largest block with less than 16 bytes of padding above the minimum; pixels of up to 4 bytes have the
    smallest block.
    """
    integer("size", size, 1)
    candidates = granularities(power_of_two("row_bytes", row_bytes))
    if size <= 4:
        return candidates[-1]
    padding = {block: -size % block for block in candidates[:4]}
    return max(block for block, added in padding.items() if added - min(padding.values()) < _ACCEPTED)


def most_steps(params, fold, dilation=1):
    """Kmax: the steps along kw for which the first buffer holds rows of adjoining points."""
    instance("params", params, ConvParams)
    fold, dilation = integer("fold", fold, 1), integer("dilation", dilation, 1)
    return (params.feature_rows - params.units) * fold // dilation + 1


@dataclass(frozen=True)
class ConvPlan:
    """A shape cut into blocks and tiles for an engine.

    Properties named ``lane_…``, and some others by their descriptions, matter in lane-private mode only.

    Attributes
    ----------
    shape : ConvShape
    params : ConvParams
    block_bytes : int
        pci: bytes of a block of channels.
    merge : int
        g: kernel columns in a pixel.
    raster : bool
        Point tiles cross the ends of lines; in lane-private mode, groups do so where possible.
    """

    shape: ConvShape
    params: ConvParams
    block_bytes: int
    merge: int = 1
    raster: bool = False

    def __post_init__(self):
        shape, params = instance("shape", self.shape, ConvShape), instance("params", self.params, ConvParams)
        for name in ("block_bytes", "merge"):
            integer(name, getattr(self, name), 1)
        if self.block_bytes not in granularities(params.row_bytes) or self.block_bytes < shape.element_bytes:
            raise ValueError(f"block_bytes cannot be {self.block_bytes!r} in rows of {params.row_bytes} bytes")
        if self.merge != 1 and (shape.operation.lanes or shape.dilation[0] != 1 or not shape.adjoin):
            raise ValueError(f"merge must be 1 for {shape.operation.name}, not {self.merge!r}, unless elements adjoin")

    @cached_property
    def fold(self):
        """ws: points that share a row."""
        return self.params.row_bytes // self.block_bytes

    @cached_property
    def pixel_bytes(self):
        """c: bytes of a pixel."""
        return self.merge * self.shape.channels * self.shape.element_bytes

    @cached_property
    def blocks(self):
        """bci: blocks of a pixel."""
        return ceil(self.pixel_bytes / self.block_bytes)

    @cached_property
    def steps(self):
        """Steps along kw of a kernel row."""
        return ceil(self.shape.kernel[0] / self.merge)

    @cached_property
    def adjoin(self):
        """Whether neighbouring points adjoin in memory, so that both buffers slide."""
        return self.shape.adjoin and self.merge == self.shape.stride[0]

    @cached_property
    def part_steps(self):
        """Steps of the longest part of a kernel row: all of them, or Kmax."""
        return min(self.steps, most_steps(self.params, self.fold, self.shape.dilation[0]))

    @cached_property
    def parts(self):
        """Parts of a kernel row, of at most Kmax steps each."""
        return ceil(self.steps / self.part_steps)

    @cached_property
    def tile_points(self):
        """Points of a tile, which is a row in lane-private mode."""
        return self.fold if self.shape.operation.lanes else self.params.units * self.fold

    @cached_property
    def crosses_lines(self):
        """Whether point tiles, or groups, cross the ends of lines."""
        return self._may_cross and self.rotates if self.shape.operation.lanes else self.raster

    @cached_property
    def point_tiles(self):
        """Tiles of points, which are rows in lane-private mode; of line pairs, only the first line counts."""
        shape = self.shape
        if shape.operation.lanes:
            rows = ceil(shape.out_width / self.fold)
            return shape.batch * (self._image_rows if self.crosses_lines else self.lane_lines * rows)
        if self.crosses_lines:
            return ceil(shape.points / self.tile_points)
        return shape.lines * ceil(shape.out_width / self.tile_points)

    @cached_property
    def slave_channels(self):
        """Output channels of a slave, aco / NS."""
        return ceil(self.shape.out_channels / self.params.slaves)

    @cached_property
    def channel_tiles(self):
        """Tiles of output channels."""
        return ceil(self.slave_channels / CHANNELS_AT_ONCE)

    @cached_property
    def tile_cycles(self):
        """Cycles of a point tile over all channel tiles: (aco / NS) · Kh · steps · bci."""
        return self.slave_channels * self.shape.kernel[1] * self.steps * self.blocks

    @cached_property
    def part_cycles(self):
        """The same for the longest part of the kernel's columns: (aco / NS) · Kh · min(steps, Kmax) · bci."""
        return self.slave_channels * self.shape.kernel[1] * self.part_steps * self.blocks

    @cached_property
    def mac_cycles(self):
        """Cycles in which the array multiplies, including losses by rounding up."""
        if self.shape.operation.lanes:
            return self.blocks * self.lane_groups * self.lane_steps
        return self.point_tiles * self.tile_cycles

    @cached_property
    def least_cycles(self):
        """MAC cycles for the limit, which in lane-private mode counts groups as if they crossed the ends of lines."""
        if self.shape.operation.lanes:
            return self.blocks * ceil(self.point_tiles / self.params.slaves) * self.lane_steps
        return self.mac_cycles

    @cached_property
    def group_points(self):
        """P: the most points of a group in lane-private mode."""
        return self.fold * self.params.slaves

    @cached_property
    def _image_rows(self):
        """Rows of the points of an image, with its lines, or first lines of pairs, in sequence."""
        return ceil(self.lane_lines * self.shape.out_width / self.fold)

    @cached_property
    def lane_groups(self):
        """Groups of up to NS rows, for all points."""
        if self.crosses_lines:
            return self.shape.batch * ceil(self._image_rows / self.params.slaves)
        return self.shape.batch * self.lane_lines * ceil(self.shape.out_width / self.group_points)

    @cached_property
    def line_pairs(self):
        """Whether output lines 2 · n and 2 · n + 1 of an image are computed at once, in lane-private mode."""
        shape, params = self.shape, self.params
        words = (shape.kernel[1] + 3 * shape.stride[1]) * self.line_words
        may = shape.operation.lanes and params.line_pairs and shape.dilation[1] == 1 and shape.out_height > 1
        return may and self.keeps_lines and words <= params.weight_bytes // params.row_bytes

    @cached_property
    def lane_lines(self):
        """Lines of an image, or pairs of lines, the last of which may have one line."""
        return ceil(self.shape.out_height / 2) if self.line_pairs else self.shape.out_height

    @cached_property
    def lane_stride(self):
        """Lines of X between two lines, or two pairs."""
        return self.shape.stride[1] * (2 if self.line_pairs else 1)

    @cached_property
    def lane_rows(self):
        """Rows of the kernel, or lines of X for a pair."""
        return self.shape.kernel[1] + self.line_pairs * self.shape.stride[1]

    @cached_property
    def lane_steps(self):
        """Steps of a group."""
        return self.lane_rows * self.shape.kernel[0]

    @cached_property
    def _may_rotate(self):
        """Whether columns of the kernel share words if lines stay."""
        columns, stride = self.shape.kernel[0], self.shape.stride[0]
        adjacent = self.shape.dilation[0] == 1 and stride <= 2 and (columns - 1) // stride < self.group_points
        return self.params.rotation and self.fold <= 2 and adjacent

    @cached_property
    def _may_cross(self):
        shape = self.shape
        wide = shape.out_width >= self.group_points
        return self.raster and self._may_rotate and shape.dilation[1] == 1 and wide

    @cached_property
    def rotates(self):
        """Whether a word serves several columns of the kernel, in lane-private mode."""
        return self.shape.operation.lanes and self._may_rotate and self.keeps_lines

    @cached_property
    def planes(self):
        """Columns of the kernel with their own words, in lane-private mode."""
        columns = self.shape.kernel[0]
        return min(columns, self.shape.stride[0]) if self._may_rotate else columns

    @cached_property
    def reach(self):
        """Points after the end of a line in its last words, for later columns, in lane-private mode."""
        return (self.shape.kernel[0] - 1) // self.shape.stride[0] if self._may_rotate else 0

    @cached_property
    def line_words(self):
        """Words of a line of X if lines stay, in lane-private mode."""
        before = self.group_points - 1 if self._may_cross else 0
        return self.planes * ceil((before + self.shape.out_width + self.reach) / self.group_points)

    @cached_property
    def kernel_stays(self):
        """Whether all rows of the kernel, if any, stay for a pass in lane-private mode."""
        return self.shape.operation is not ConvOperation.DEPTHWISE or self.shape.taps <= KERNEL_ROWS

    @cached_property
    def keeps_lines(self):
        """Whether lines of X stay in the memories of slaves for all their output lines, in lane-private mode."""
        sh, params = self.shape.stride[1], self.params
        between = (self.shape.kernel[1] - 1) * self.shape.dilation[1]
        words = (between + 1 + sh) * self.line_words
        return self.kernel_stays and sh <= between and words <= params.weight_bytes // params.row_bytes

    @cached_property
    def fetch_cycles(self):
        """Cycles in which rows are fetched; in each of them, ``lanes`` pieces of at most 16 bytes of one block."""
        params, shape = self.params, self.shape
        if shape.operation.lanes:
            return self._lane_fetch_cycles
        pieces = params.units * params.row_bytes // min(self.block_bytes, 16)
        sets = self.point_tiles * self.channel_tiles * self.shape.kernel[1] * self.steps * self.blocks
        return sets * ceil(pieces / params.lanes)

    @property
    def _lane_fetch_cycles(self):
        shape, params = self.shape, self.params
        columns, rows = shape.kernel
        kernel_requests = shape.taps if shape.operation is ConvOperation.DEPTHWISE else 0
        lines, width, begins = shape.lines * rows, shape.out_width, [0]  # the first points of lines in their words
        if self.keeps_lines:
            image_lines = (self.lane_lines - 1) * self.lane_stride + (self.lane_rows - 1) * shape.dilation[1] + 1
            lines = shape.batch * image_lines
        elif not self.kernel_stays:
            kernel_requests *= shape.lines * ceil(width / self.group_points)
        planes = columns
        if self.rotates:
            planes, width = self.planes, width + self.reach
        if self.crosses_lines:
            lines = shape.batch
            begins = [line // self.lane_stride * shape.out_width % self.group_points for line in range(image_lines)]
        # The last words of a line take requests for their points alone, but at least one.
        points, group = params.lanes * 16 // max(self.block_bytes, 16), self.group_points
        last = (self.line_words // self.planes if self.rotates else ceil(width / group)) - 1
        requests = 0
        for begin in begins:
            requests += last * ceil(group / points) + max(1, ceil((begin + width - last * group) / points))
        return self.blocks * (lines * planes * requests + kernel_requests)

    @cached_property
    def write_cycles(self):
        """Cycles in which results are written: up to W bytes of a point in each, or half as many of two points."""
        shape, params = self.shape, self.params
        lanes, element = shape.operation.lanes, shape.element_bytes
        span = self.block_bytes // element if lanes else CHANNELS_AT_ONCE * params.slaves
        passes, rest = divmod(shape.out_channels, span)
        # The rests of two points of a line in a pass are written at once.
        pairs = shape.points - shape.lines * ceil(shape.out_width / 2)
        grouped = params.writes_pairs and (not lanes or (self.fold > 1 and params.results > span))

        def writes(channels):
            size, width = channels * shape.result_bytes, params.write_bytes
            short = size <= width // 2 if lanes else 0 < size % width <= width // 2
            return shape.points * ceil(size / width) - grouped * short * pairs

        return passes * writes(span) + (writes(rest) if rest else 0)

    @cached_property
    def costs(self):
        """The least cycles of each resource: array, post-processing, shared memory."""
        moved = max(self.shape.bytes_read, self.shape.bytes_written)
        return {
            "macs": self.least_cycles,
            "results": ceil(self.shape.results / self.params.results),
            "bytes": ceil(moved / _MEMORY_BYTES),
        }

    @cached_property
    def limit(self):
        """The least cycles of the layer."""
        return max(self.costs.values())

    @cached_property
    def bound(self):
        """The resource that sets the limit."""
        costs = self.costs
        return max(costs, key=costs.get)

    @cached_property
    def peak(self):
        """Most MACs of the array in a cycle, for elements of this size."""
        return self.params.peak // self.shape.element_bytes

    @cached_property
    def array_use(self):
        """Share of the array that rounding up leaves in use."""
        return self.shape.macs / (self.peak * self.mac_cycles)

    @cached_property
    def utilisation(self):
        """MAC utilisation at the limit."""
        return self.shape.macs / (self.peak * self.limit)

    @cached_property
    def feature_reuse(self):
        """Weight rows multiplied with a feature row while it stays: channels of a slave in a tile."""
        return min(self.slave_channels, CHANNELS_AT_ONCE)

    @cached_property
    def weight_reuse(self):
        """Points multiplied with a weight row while it stays."""
        return self.params.units * self.fold

    @cached_property
    def weight_rows(self):
        """Weight rows of a slave for a point tile over all channel tiles: one a cycle."""
        return self.tile_cycles

    @cached_property
    def weights_stay(self):
        """Whether a quarter of the weight memory holds the weights of a channel."""
        rows = self.shape.kernel[1] * self.steps * self.blocks
        return rows * self.block_bytes <= self.params.weight_bytes // CHANNELS_AT_ONCE


def plan_convolution(shape, params, rule="cost"):
    """The best :class:`ConvPlan` of a shape by a rule.

    Parameters
    ----------
    shape : ConvShape
    params : ConvParams
    rule : "cost", "fetch" or "seed"
        "cost": the fewest cycles of the array; ties are decided by adjoining points, then fewer merged columns, then
        larger blocks, then tiles that end with their lines. "fetch": the fewest cycles of the array or of its fetches,
        whichever takes longer; ties by fewer steps, since each step fetches the weights of a channel separately, then
        as for "cost". "seed": stride removal, blocks by the seed's rule, tiles that end with their lines.
    """
    if not isinstance(rule, str) or rule not in _RULES:
        raise ValueError(f"rule must be one of {', '.join(_RULES)}, not {shown(rule)}{suggestion(rule, _RULES)}")
    instance("params", params, ConvParams)
    if rule == "seed":
        merge = shape.stride[0] if _mergeable(shape) else 1
        size = seed_granularity(merge * shape.channels * shape.element_bytes, params.row_bytes)
        return ConvPlan(shape, params, max(size, shape.element_bytes), merge)
    return min(convolution_plans(shape, params), key=_fetch_key if rule == "fetch" else _cost_key)


def convolution_plans(shape, params):
    """The list of every :class:`ConvPlan` of a shape, for other rules than those of :func:`plan_convolution`."""
    merges = {1, shape.stride[0], shape.kernel[0]} if _mergeable(shape) else {1}
    return [
        ConvPlan(shape, params, size, merge, raster)
        for merge in sorted(merges)
        for size in granularities(instance("params", params, ConvParams).row_bytes)
        if size >= shape.element_bytes
        for raster in (False, True)
    ]


def _mergeable(shape):
    """Whether a pixel may have several columns of the kernel."""
    instance("shape", shape, ConvShape)
    return not shape.operation.lanes and shape.dilation[0] == 1 and shape.adjoin


def _cost_key(plan):
    return plan.mac_cycles, not plan.adjoin, plan.merge, -plan.block_bytes, plan.raster


def _fetch_key(plan):
    return max(plan.mac_cycles, plan.fetch_cycles), plan.steps, *_cost_key(plan)
