"""The order of work in lane-private mode against loops: words, rows of the kernel, flags, and what is freed when."""

import random
from dataclasses import dataclass
from math import ceil

import pytest
from amaranth.hdl import Value

from support.conv import conv_unit
from support.streams import pulse
from tilewright.hw.conv.array.lane_steps import LaneSteps
from tilewright.spec.conv import KERNEL_ROWS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together, unpacker, watch_stream

SEED = 46
MOST_STEPS = 200  # of a random job
PARAMS = {rotation: conv_unit(slaves=4, rotation=rotation) for rotation in (True, False)}
WORDS = PARAMS[True].words


@dataclass
class Job:
    keeps: bool
    pool: bool
    columns: int
    rows: int
    stride: int
    dilation: int
    width: int
    lines: int
    images: int
    passes: int
    fold: int = 1
    across: int = 0  # stride along lines, if rows are rotated
    raster: bool = False
    pairs: bool = False

    @property
    def kernel_stays(self):
        return self.pool or self.rows * self.columns <= KERNEL_ROWS

    @property
    def row_lines(self):
        """Lines of X that an output line needs, or a pair of them."""
        return (self.rows - 1) * self.dilation + 1 + self.pairs * self.stride

    @property
    def lines_apart(self):
        """Lines of X from an output line to the next, or from a pair to the next."""
        return (2 if self.pairs else 1) * self.stride

    @property
    def all_lines(self):
        """Output lines, or pairs of them."""
        return ceil(self.lines / 2) if self.pairs else self.lines

    @property
    def taps(self):
        """Positions of the kernel, or of both of a pair."""
        return (self.rows + self.pairs * self.stride) * self.columns

    @property
    def points(self):
        """Of a whole group."""
        return 4 * self.fold

    @property
    def planes(self):
        return min(self.across, self.columns) if self.across else self.columns

    @property
    def of_line(self):
        """Words of a line of X."""
        reach = (self.columns - 1) // self.across if self.across else 0
        return self.planes * -(-(self.raster * (self.points - 1) + self.width + reach) // self.points)

    def plan(self):
        lines = {"row_words": self.dilation, "line_words": self.lines_apart, "image_words": self.row_lines}
        return {"keeps": self.keeps, "pool": self.pool, "kernel_stays": self.kernel_stays, "raster": self.raster,
                "granularity": 5 - self.fold, "last_plane": self.planes - 1,
                "last_step": self.columns - 1, "last_kernel_row": self.rows - 1, "last_column": self.width - 1,
                "last_line": self.all_lines - 1, "last_image": self.images - 1, "last_pass": self.passes - 1,
                "stride": self.lines_apart - 1, "line_stride": self.stride - 1, "pairs": self.pairs,
                "last_row_step": self.rows - 1 + self.pairs * self.stride,
                } | {name: count * self.of_line % WORDS for name, count in lines.items()}  # fmt: skip

    def groups(self):
        """Points (line, column) of each group of an image."""
        parts = [[(line, column) for column in range(self.width)] for line in range(self.all_lines)]
        if self.raster:
            parts = [[point for part in parts for point in part]]
        return [part[first : first + self.points] for part in parts for first in range(0, len(part), self.points)]

    def where(self, line, column, kh, kw):
        """Word, counted from those of the image, and place in the group of a point of X in it."""
        row, begin = line * self.lines_apart + kh * self.dilation, 0
        if self.raster:  # where the point above it was
            begin = row // self.lines_apart * self.width % self.points
        plane, shift = (kw % self.across, kw // self.across) if self.across else (kw, 0)
        if self.across > self.columns:
            plane, shift = kw, 0
        behind, place = divmod(begin + column + shift, self.points)
        return row * self.of_line + behind * self.planes + plane, place

    def rows_of(self, kh):
        """Rows of the kernel, counted from the first one, that both lines of a pair have of a line of X; or None."""
        return kh if kh < self.rows else None, kh - self.stride if self.pairs and kh >= self.stride else None

    def steps(self):
        """Words of each point and their place, rows of the kernel, whether accumulators of both lines begin, whether
        the group and the pass end; words and rows free then: counted from 0.
        """
        image = word = row = 0  # where an image's lines begin
        columns, groups = self.columns, self.groups()
        for _ in range(self.passes):
            for number in range(self.images):
                for group, points in enumerate(groups):
                    final = (number, group) == (self.images - 1, len(groups) - 1)
                    line = points[0][0]
                    line_over = (line, self.width - 1) in points
                    for tap in range(self.taps):
                        kh, kw = divmod(tap, columns)
                        kept = [self.where(*point, kh, kw) for point in points]
                        kept = [(image + at, place) for at, place in kept]
                        over = tap == self.taps - 1
                        after = self.lines_apart if line < self.all_lines - 1 else self.row_lines
                        free = image + (line * self.lines_apart + line_over * over * after) * self.of_line
                        now = [None if one is None else row + (one * columns + kw if self.kernel_stays else 0)
                               for one in self.rows_of(kh)]  # fmt: skip
                        begins = tap == 0, self.pairs and tap == self.stride * columns
                        row += 0 if self.kernel_stays else 1
                        rows_free = row + (self.rows * columns if over and final and self.kernel_stays else 0)
                        yield (kept if self.keeps else [(word, place) for place in range(len(points))], now, begins,
                               (over, final), free if self.keeps else word + 1, rows_free)  # fmt: skip
                        word += 1
                image += ((self.all_lines - 1) * self.lines_apart + self.row_lines) * self.of_line
            row += self.rows * columns if self.kernel_stays else 0


def some_job(rng, rotation, wanted=lambda job: True):
    while True:
        many = rng.random() < 0.1
        job = Job(rng.random() < 0.7, rng.random() < 0.3, rng.choice([9, 14]) if many else rng.randrange(1, 6),
                  rng.choice([5, 8]) if many else rng.randrange(1, 5), rng.randrange(1, 4), rng.randrange(1, 4),
                  rng.randrange(1, 13), *(rng.randrange(1, 4) for _ in range(3)))  # fmt: skip
        job.fold = rng.choice([1, 2])
        if rotation and job.keeps and rng.random() < 0.7:
            job.across = rng.choice([1, 2])
            job.raster = job.width >= job.points and rng.random() < 0.7
            job.dilation = 1 if job.raster else job.dilation
        if rotation and job.keeps and job.lines > 1 and rng.random() < 0.8:
            job.pairs, job.dilation = True, 1
        near = not job.across or (job.columns - 1) // job.across < job.points
        shares = job.stride <= (job.rows - 1) * job.dilation
        fits = (job.row_lines + job.lines_apart) * job.of_line <= WORDS
        # One long job takes as much time as all others together.
        short = job.passes * job.images * len(job.groups()) * job.taps <= MOST_STEPS
        if short and wanted(job) and (not job.keeps or (fits and shares and job.kernel_stays and near)):
            return job


def check_read(job, read, points, base):
    """Each point of the group is read of its word, and turned to its place."""
    halves = 1 if job.fold == 2 else 2
    for number, (word, place) in enumerate(points):
        for half in range(halves):
            part = place * halves + half
            if len(read.words) > 1:
                assert (part - read.turn) % len(read.words) == number * halves + half, job
            assert read.words[part % len(read.words)] == (base + word) % WORDS, (job, number)


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs(mode, rotation):
    """Words and rows come one after the other, as far as there is room; in ``idle`` modes late."""
    dut, rng = elaborated(LaneSteps, PARAMS[rotation]), random.Random(f"{SEED} {mode}")
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    jobs = [some_job(rng, rotation) for _ in range(20 if rotation else 8)]
    jobs.append(some_job(rng, rotation, lambda job: not job.kernel_stays))
    if rotation:
        jobs.append(some_job(rng, rotation, lambda job: job.pairs and job.lines % 2 and not job.pool))
    assert {job.keeps for job in jobs} == {False, True} and rotation == any(job.raster for job in jobs)

    bits, unpack = Value.cast(dut.o.payload), unpacker(dut.o.payload.shape())

    async def bench(ctx):
        base = base_row = 0  # numbers go on over jobs
        for job in jobs:
            ctx.set(dut.plan, job.plan())
            await pulse(ctx, dut.start)
            steps = list(job.steps())
            # The last step frees all that there was.
            total, total_rows = steps[-1][-2], 0 if job.pool else steps[-1][-1]
            written = rows = free = free_rows = 0
            for points, (row, below), begins, flags, after, rows_after in steps:
                word = max(at for at, _ in points)
                while True:
                    if rng.random() >= idle:
                        written = min(written + rng.randrange(3), total, free + WORDS)
                        rows = min(rows + rng.randrange(3), total_rows, free_rows + KERNEL_ROWS)
                    taken = rng.random() >= stall
                    set_together(
                        ctx,
                        (dut.written, (base + written) % (2 * WORDS)),
                        (dut.written_kernel, (base_row + rows) % (2 * KERNEL_ROWS)),
                        (dut.o.ready, taken),
                    )
                    there = word < written and (job.pool or row is None or row < rows)
                    assert ctx.get(dut.o.valid) == there, (job, word, row, written, rows)
                    if there:
                        found = unpack(ctx.get(bits))
                        check_read(job, found.read, points, base)
                        for half, (one, kernel) in enumerate(zip((row, below), found.kernel, strict=False)):
                            assert found.halves.off >> half & 1 == (one is None), job
                            if one is not None:
                                assert job.pool or kernel == (base_row + one) % KERNEL_ROWS, job
                                assert found.halves.first >> half & 1 == begins[half], job
                        assert (found.flags.first, found.flags.last, found.flags.final) == (begins[0], *flags), job
                    await ctx.tick()
                    if there and taken:
                        break
                free, free_rows = after, 0 if job.pool else rows_after
                assert ctx.get(dut.freed) == (base + free) % (2 * WORDS), job
                assert ctx.get(dut.freed_kernel) == (base_row + free_rows) % (2 * KERNEL_ROWS), job
            assert (free, free_rows) == (total, total_rows)
            base, base_row = base + total, base_row + total_rows
            ctx.set(dut.written, base % (2 * WORDS))
            ctx.set(dut.written_kernel, base_row % (2 * KERNEL_ROWS))
            ctx.set(dut.o.ready, 0)
            await ctx.tick()
            assert not ctx.get(dut.o.valid)

    simulate(dut, bench, background=[watch_stream(dut.o, "o")], deadline=100_000)
