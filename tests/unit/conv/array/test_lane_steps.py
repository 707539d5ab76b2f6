"""The order of work in lane-private mode against loops: words, rows of the kernel, flags, and what is freed when."""

import random
from dataclasses import dataclass

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, KERNEL_ROWS
from tilewright.hw.conv.array.lane_steps import LaneSteps
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, watch_stream

SEED = 46
PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(4096))
WORDS = PARAMS.words


@dataclass
class Job:
    keeps: bool
    pool: bool
    columns: int
    rows: int
    stride: int
    dilation: int
    groups: int
    lines: int
    images: int
    passes: int

    @property
    def kernel_stays(self):
        return self.pool or self.rows * self.columns <= KERNEL_ROWS

    @property
    def row_lines(self):
        """Lines of X that an output line needs."""
        return (self.rows - 1) * self.dilation + 1

    @property
    def of_line(self):
        return self.groups * self.columns

    def plan(self):
        lines = {"row_words": self.dilation, "line_words": self.stride, "image_words": self.row_lines}
        return {"keeps": self.keeps, "pool": self.pool, "kernel_stays": self.kernel_stays,
                "last_step": self.columns - 1, "last_kernel_row": self.rows - 1, "last_group": self.groups - 1,
                "last_line": self.lines - 1, "last_image": self.images - 1, "last_pass": self.passes - 1,
                } | {name: count * self.of_line % WORDS for name, count in lines.items()}  # fmt: skip

    def steps(self):
        """(Word, row of the kernel, flags; words and rows that are free then) of each step, counted from 0."""
        image = word = row = 0  # where an image's lines begin
        taps = self.rows * self.columns
        for _ in range(self.passes):
            for number in range(self.images):
                for line in range(self.lines):
                    begin = image + line * self.stride * self.of_line
                    for group in range(self.groups):
                        tile = (number, line, group)
                        final = tile == (self.images - 1, self.lines - 1, self.groups - 1)
                        for tap in range(taps):
                            kh, kw = divmod(tap, self.columns)
                            kept = begin + kh * self.dilation * self.of_line + group * self.columns + kw
                            line_over = group == self.groups - 1 and tap == taps - 1
                            after = self.stride if line < self.lines - 1 else self.row_lines
                            free = begin + line_over * after * self.of_line if self.keeps else word + 1
                            now = row + tap if self.kernel_stays else row
                            over = tap == taps - 1 and final
                            row += 0 if self.kernel_stays else 1
                            rows_free = row + (taps if over and self.kernel_stays else 0)
                            yield kept if self.keeps else word, now, (tap == 0, tap == taps - 1, final), free, rows_free
                            word += 1
                image += ((self.lines - 1) * self.stride + self.row_lines) * self.of_line
            row += taps if self.kernel_stays else 0


def some_job(rng):
    while True:
        many = rng.random() < 0.1
        job = Job(rng.random() < 0.6, rng.random() < 0.3, rng.choice([9, 14]) if many else rng.randrange(1, 5),
                  rng.choice([5, 8]) if many else rng.randrange(1, 5), *(rng.randrange(1, 4) for _ in range(2)),
                  *(rng.randrange(1, 4) for _ in range(4)))  # fmt: skip
        fits = (job.row_lines + job.stride) * job.of_line <= WORDS
        if not job.keeps or (fits and job.kernel_stays):
            return job


@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs(mode):
    """Words and rows come one after the other, as far as there is room; in ``idle`` modes late."""
    dut, rng = elaborated(LaneSteps, PARAMS), random.Random(f"{SEED} {mode}")
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    jobs = [some_job(rng) for _ in range(9)]
    assert {job.keeps for job in jobs} == {False, True}

    async def bench(ctx):
        base = base_row = 0  # numbers go on over jobs
        for job in jobs:
            ctx.set(dut.plan, job.plan())
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            steps = list(job.steps())
            # The last step frees all that there was.
            total, total_rows = steps[-1][3], 0 if job.pool else steps[-1][4]
            written = rows = free = free_rows = 0
            for word, row, flags, after, rows_after in steps:
                while True:
                    if rng.random() >= idle:
                        written = min(written + rng.randrange(3), total, free + WORDS)
                        rows = min(rows + rng.randrange(3), total_rows, free_rows + KERNEL_ROWS)
                    ctx.set(dut.written, (base + written) % (2 * WORDS))
                    ctx.set(dut.written_kernel, (base_row + rows) % (2 * KERNEL_ROWS))
                    taken = rng.random() >= stall
                    ctx.set(dut.o.ready, taken)
                    there = word < written and (job.pool or row < rows)
                    assert ctx.get(dut.o.valid) == there, (job, word, row, written, rows)
                    if there:
                        found = ctx.get(dut.o.payload)
                        assert found.word == (base + word) % WORDS, job
                        assert job.pool or found.kernel == (base_row + row) % KERNEL_ROWS, job
                        assert (found.flags.first, found.flags.last, found.flags.final) == flags, job
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


def test_full_rate_and_latency():
    """A step a cycle from the cycle after the start on."""
    dut, job = elaborated(LaneSteps, PARAMS), Job(True, False, 3, 3, 1, 1, 2, 4, 1, 1)
    cycles = []

    async def bench(ctx):
        ctx.set(dut.plan, job.plan())
        ctx.set(dut.written, 36)
        ctx.set(dut.written_kernel, 9)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for cycle in range(80):
            if ctx.get(dut.o.valid):
                cycles.append(cycle)
            await ctx.tick()

    simulate(dut, bench)
    assert cycles == list(range(4 * 2 * 9))
