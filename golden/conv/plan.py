"""The granularity of channels by the seed's rule (docs/conv.md, "Granularity")."""

from dataclasses import dataclass
from math import ceil

from tilewright.spec.conv import CHANNELS_AT_ONCE, KERNEL_ROWS, ConvOperation, ConvParams
from tilewright.spec.names import suggestion

from ..arguments import instance, integer, power_of_two, shown
from .shape import ConvShape

__all__ = ["ConvPlan", "convolution_plans", "granularities", "most_steps", "plan_convolution", "seed_granularity"]

#: Bytes by which more padding is accepted for the sake of larger blocks.
_ACCEPTED = 16


def granularities(row_bytes):
    """Bytes of a block that a row of ``row_bytes`` can have, the largest first, as a tuple."""
    return tuple(row_bytes >> shift for shift in range(5) if row_bytes >> shift)


def seed_granularity(size, row_bytes=64):
    """Bytes of a block for a pixel of ``size`` bytes, in rows of ``row_bytes``.

    The largest that pads less than 16 bytes more than the best one does; pixels of up to 4 bytes have the smallest.
    """
    integer("size", size, 1)
    candidates = granularities(power_of_two("row_bytes", row_bytes))
    if size <= 4:
        return candidates[-1]
    padding = {block: -size % block for block in candidates[:4]}
    return max(block for block, added in padding.items() if added - min(padding.values()) < _ACCEPTED)


#: Bytes of shared memory that are read, and written, in a cycle.
_MEMORY_BYTES = 128
_RULES = ("cost", "fetch", "seed")


def most_steps(params, fold, dilation=1):
    """Kmax: steps along kw for which the first buffer holds rows of adjoining points."""
    instance("params", params, ConvParams)
    fold, dilation = integer("fold", fold, 1), integer("dilation", dilation, 1)
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
        Point tiles go on across the ends of lines, in lane-private mode groups where they can.
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
    def crosses_lines(self):
        """Whether point tiles, or groups, go on across the ends of lines."""
        return self._may_cross and self.rotates if self.shape.operation.lanes else self.raster

    @property
    def point_tiles(self):
        """Tiles of points, in lane-private mode rows; of two lines that are computed at once those of the first one."""
        shape = self.shape
        if shape.operation.lanes:
            rows = ceil(shape.out_width / self.fold)
            return shape.batch * (self._image_rows if self.crosses_lines else self.lane_lines * rows)
        if self.crosses_lines:
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
            return self.blocks * self.lane_groups * self.lane_steps
        return self.point_tiles * self.tile_cycles

    @property
    def least_cycles(self):
        """MAC cycles that the limit counts: in lane-private mode as if groups went on across the ends of lines."""
        if self.shape.operation.lanes:
            return self.blocks * ceil(self.point_tiles / self.params.slaves) * self.lane_steps
        return self.mac_cycles

    @property
    def group_points(self):
        """P: points that a group has at most, in lane-private mode."""
        return self.fold * self.params.slaves

    @property
    def _image_rows(self):
        """Rows of the points of an image's lines, or first lines of pairs, one behind the other."""
        return ceil(self.lane_lines * self.shape.out_width / self.fold)

    @property
    def lane_groups(self):
        """In lane-private mode: groups of up to NS rows of all points."""
        if self.crosses_lines:
            return self.shape.batch * ceil(self._image_rows / self.params.slaves)
        return self.shape.batch * self.lane_lines * ceil(self.shape.out_width / self.group_points)

    @property
    def line_pairs(self):
        """In lane-private mode: whether output lines 2 · n and 2 · n + 1 of an image are computed at once."""
        shape, params = self.shape, self.params
        words = (shape.kernel[1] + 3 * shape.stride[1]) * self.line_words
        may = shape.operation.lanes and params.line_pairs and shape.dilation[1] == 1 and shape.out_height > 1
        return may and self.keeps_lines and words <= params.weight_bytes // params.row_bytes

    @property
    def lane_lines(self):
        """In lane-private mode: lines of an image, or pairs of them, one of which may have one line."""
        return ceil(self.shape.out_height / 2) if self.line_pairs else self.shape.out_height

    @property
    def lane_stride(self):
        """In lane-private mode: lines of X from a line, or a pair, to the next."""
        return self.shape.stride[1] * (2 if self.line_pairs else 1)

    @property
    def lane_rows(self):
        """In lane-private mode: rows of the kernel, or lines of X that a pair needs."""
        return self.shape.kernel[1] + self.line_pairs * self.shape.stride[1]

    @property
    def lane_steps(self):
        """In lane-private mode: steps of a group."""
        return self.lane_rows * self.shape.kernel[0]

    @property
    def _may_rotate(self):
        """Whether columns of the kernel share words, if lines stay."""
        columns, stride = self.shape.kernel[0], self.shape.stride[0]
        near = self.shape.dilation[0] == 1 and stride <= 2 and (columns - 1) // stride < self.group_points
        return self.params.rotation and self.fold <= 2 and near

    @property
    def _may_cross(self):
        shape = self.shape
        wide = shape.out_width >= self.group_points
        return self.raster and self._may_rotate and shape.dilation[1] == 1 and wide

    @property
    def rotates(self):
        """In lane-private mode: whether a word serves several columns of the kernel."""
        return self.shape.operation.lanes and self._may_rotate and self.keeps_lines

    @property
    def planes(self):
        """In lane-private mode: columns of the kernel that have words of their own."""
        columns = self.shape.kernel[0]
        return min(columns, self.shape.stride[0]) if self._may_rotate else columns

    @property
    def reach(self):
        """In lane-private mode: points behind those of a line that its last words have for later columns."""
        return (self.shape.kernel[0] - 1) // self.shape.stride[0] if self._may_rotate else 0

    @property
    def line_words(self):
        """In lane-private mode: words of a line of X, if lines stay."""
        before = self.group_points - 1 if self._may_cross else 0
        return self.planes * ceil((before + self.shape.out_width + self.reach) / self.group_points)

    @property
    def kernel_stays(self):
        """In lane-private mode: whether all rows of the kernel stay for a pass, or there are none."""
        return self.shape.operation is not ConvOperation.DEPTHWISE or self.shape.taps <= KERNEL_ROWS

    @property
    def keeps_lines(self):
        """In lane-private mode: whether lines of X stay in slaves' memories for all output lines that they serve."""
        sh, params = self.shape.stride[1], self.params
        between = (self.shape.kernel[1] - 1) * self.shape.dilation[1]
        words = (between + 1 + sh) * self.line_words
        return self.kernel_stays and sh <= between and words <= params.weight_bytes // params.row_bytes

    @property
    def fetch_cycles(self):
        """Cycles in which rows are fetched, ``lanes`` pieces of at most 16 bytes of one block in each."""
        params, shape = self.params, self.shape
        if shape.operation.lanes:
            return self._fetch_of_lanes()
        pieces = params.units * params.row_bytes // min(self.block_bytes, 16)
        sets = self.point_tiles * self.channel_tiles * self.shape.kernel[1] * self.steps * self.blocks
        return sets * ceil(pieces / params.lanes)

    def _fetch_of_lanes(self):
        shape, params = self.shape, self.params
        columns, rows = shape.kernel
        of_kernel = shape.taps if shape.operation is ConvOperation.DEPTHWISE else 0
        lines, width, begins = shape.lines * rows, shape.out_width, [0]  # where a line's points begin in its words
        if self.keeps_lines:
            of_image = (self.lane_lines - 1) * self.lane_stride + (self.lane_rows - 1) * shape.dilation[1] + 1
            lines = shape.batch * of_image
        elif not self.kernel_stays:
            of_kernel *= shape.lines * ceil(width / self.group_points)
        planes = columns
        if self.rotates:
            planes, width = self.planes, width + self.reach
        if self.crosses_lines:
            lines = shape.batch
            begins = [line // self.lane_stride * shape.out_width % self.group_points for line in range(of_image)]
        # Requests of a line: of the last words as many as there are points for, but one.
        points, group = params.lanes * 16 // max(self.block_bytes, 16), self.group_points
        last = (self.line_words // self.planes if self.rotates else ceil(width / group)) - 1
        requests = 0
        for begin in begins:
            requests += last * ceil(group / points) + max(1, ceil((begin + width - last * group) / points))
        return self.blocks * (lines * planes * requests + of_kernel)

    @property
    def write_cycles(self):
        """Cycles in which results are written: of up to W bytes of a point each, or half as many of two."""
        shape, params = self.shape, self.params
        lanes, element = shape.operation.lanes, shape.element_bytes
        span = self.block_bytes // element if lanes else CHANNELS_AT_ONCE * params.slaves
        passes, rest = divmod(shape.out_channels, span)
        # Of what is left of each point in a pass, two are written at once, but not over the end of a line.
        together = shape.points - shape.lines * ceil(shape.out_width / 2)
        grouped = params.writes_pairs and (not lanes or (self.fold > 1 and params.results > span))

        def writes(channels):
            size, width = channels * shape.result_bytes, params.write_bytes
            short = size <= width // 2 if lanes else 0 < size % width <= width // 2
            return shape.points * ceil(size / width) - grouped * short * together

        return passes * writes(span) + (writes(rest) if rest else 0)

    @property
    def costs(self):
        """Cycles that each resource needs at least: array, post-processing, shared memory."""
        moved = max(self.shape.bytes_read, self.shape.bytes_written)
        return {
            "macs": self.least_cycles,
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
    rule : "cost", "fetch" or "seed"
        "cost": the fewest cycles of the array; of equal ones first those whose points adjoin, then fewer merged
        columns, then larger blocks, then tiles that end with their lines. "fetch": the fewest cycles of the array or,
        where that takes longer, of fetching its rows; of equal ones first those with the fewest steps, for each of
        which the weights of a channel are fetched by themselves. "seed": stride removal, blocks by the seed's rule,
        tiles that end with their lines.
    """
    if not isinstance(rule, str) or rule not in _RULES:
        raise ValueError(f"rule must be one of {', '.join(_RULES)}, not {shown(rule)}{suggestion(rule, _RULES)}")
    instance("params", params, ConvParams)
    if rule == "seed":
        merge = shape.stride[0] if _mergeable(shape) else 1
        size = seed_granularity(merge * shape.channels * shape.element_bytes, params.row_bytes)
        return ConvPlan(shape, params, max(size, shape.element_bytes), merge)
    return min(convolution_plans(shape, params), key=_with_fetch if rule == "fetch" else _alone)


def convolution_plans(shape, params):
    """All that :func:`plan_convolution` chooses among, for rules of one's own: a list of :class:`ConvPlan`."""
    merges = {1, shape.stride[0], shape.kernel[0]} if _mergeable(shape) else {1}
    return [
        ConvPlan(shape, params, size, merge, raster)
        for merge in sorted(merges)
        for size in granularities(instance("params", params, ConvParams).row_bytes)
        if size >= shape.element_bytes
        for raster in (False, True)
    ]


def _mergeable(shape):
    """Whether columns of the kernel may be taken as one pixel."""
    instance("shape", shape, ConvShape)
    return not shape.operation.lanes and shape.dilation[0] == 1 and shape.adjoin


def _alone(plan):
    """By what plans are compared, if all that is needed is there in time."""
    return plan.mac_cycles, not plan.adjoin, plan.merge, -plan.block_bytes, plan.raster


def _with_fetch(plan):
    """By what they are compared where rows have to be fetched."""
    return max(plan.mac_cycles, plan.fetch_cycles), plan.steps, *_alone(plan)
