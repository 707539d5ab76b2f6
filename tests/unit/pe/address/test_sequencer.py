"""The sequencer makes the accesses that docs/pe.md says, element by element; one a cycle, without gaps between jobs."""

import random
from dataclasses import replace

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from support.pe_accesses import BlockDirectory, OffsetSets, Segment, Threads, expected, observed
from support.pe_operands import lane_registers
from support.selection import cases, grid
from support.streams import transact
from tilewright.hw.pe.address.sequencer import Sequencer
from tilewright.hw.pe.layouts import BASES_SETS, PREDICATES, AccessKind, JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.hw.pe.registers import PredicateFile
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES, send

SEED = 20261121
PARAMS = PE_PRESETS["unit"].replace(threads=13, regs=48, pages=64)
#: Of the shared memory: an access takes two cycles.
PACED = PARAMS.smem.replace(chunks_a_cycle=4)
#: Cycles from the one in which a job is accepted to its first access, if offsets need not be read.
LATENCY = 11
#: Cycles that reading offsets takes, besides one for each register of each group.
BUILD_CYCLES = 6


class WithPredicates(Elaboratable):
    """The sequencer and the predicates that it reads."""

    def __init__(self, params):
        self.sequencer = Sequencer(params)
        self.predicates = PredicateFile(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.sequencer
        m.submodules.predicates = predicates = self.predicates
        connect(m, dut=dut.predicates, predicates=predicates.reads)
        return m


class Bench:
    """The sequencer with predicates, and registers that answer."""

    def __init__(self, params, threads, *, busy=0.0, seed=SEED):
        self.params, self.threads, self.busy = params, threads, busy
        self.rng = random.Random(seed)
        self.top = elaborated(WithPredicates, params)
        self.dut, self.predicates = self.top.sequencer, self.top.predicates

    def words(self, register, group):
        rows = self.threads.registers[LANES * group : LANES * (group + 1)]
        return ([row[register % self.params.regs] for row in rows] + [0] * LANES)[:LANES]

    async def set_predicates(self, ctx):
        writes = []
        for group in range(self.params.groups):
            lanes = self.threads.predicates[LANES * group : LANES * (group + 1)]
            for predicate in range(PREDICATES):
                values = sum((bits >> predicate & 1) << lane for lane, bits in enumerate(lanes))
                mask = (1 << len(lanes)) - 1
                writes.append({"predicate": predicate, "group": group, "lanes": mask, "values": values})
        await send(ctx, self.predicates.writes, writes)

    def run(self, jobs, wanted, *, idle=0.0, stall=0.0):
        """Runs the jobs, and returns the cycles in which they were accepted, and the cycles of the accesses."""
        jobs_port, accesses_port = ports = "sequencer.jobs", "sequencer.linear"
        start = PREDICATES * self.params.groups

        async def done(ctx):
            assert not ctx.get(self.dut.linear.valid)
            assert ctx.get(self.dut.idle)

        payloads, cycles = transact(
            self.top, {jobs_port: jobs}, {accesses_port: len(wanted)}, seed=SEED, starts=dict.fromkeys(ports, start),
            pauses={jobs_port: idle, accesses_port: stall}, watch=["sequencer.lane_reads.requests"],
            testbenches=[self.set_predicates],
            background=[lane_registers(self.dut.lane_reads, self.words, self.rng, busy=self.busy)],
            settle=LATENCY, then=done, deadline=20 * len(wanted) + 2000,
        )  # fmt: skip
        for position, (payload, access) in enumerate(zip(map(observed, payloads[accesses_port]), wanted, strict=True)):
            assert payload == access, f"access {position}"
        return tuple([cycle - start for cycle in cycles[port]] for port in ports)


def random_segment(rng, params, number, rank=None, element_log2=None):
    rank = rank or rng.randint(1, 4)
    element_log2 = rng.randrange(3) if element_log2 is None else element_log2
    paged = rng.random() < 0.7
    while True:
        page_log2 = [rng.randint(4 - element_log2, 7 - element_log2), *(rng.randrange(4) for _ in range(rank - 1))]
        size = [rng.randint(1, 200), *(rng.randint(1, 30) for _ in range(rank - 1))]
        if not paged:
            size = [min(extent, 1 << log2) for extent, log2 in zip(size, page_log2, strict=True)]
        segment = Segment(number, element_log2, tuple(size), tuple(page_log2), paged, rng.randrange(4))
        pages = 1
        for count in segment.page_counts:
            pages *= count
        if pages > params.pages:
            continue
        if paged:
            return replace(segment, first_entry=rng.randint(0, params.pages - pages))
        return replace(segment, base=rng.getrandbits(12))


def random_threads(rng, params, segments):
    """Registers 8·s to 8·s + 3 are offsets in segment s, and those from 8·s + 4 on too."""
    registers = [[rng.getrandbits(32) for _ in range(params.regs)] for _ in range(params.threads)]
    for segment in segments:
        for first in (8 * segment.number, 8 * segment.number + 4):
            start = [rng.randrange(size) for size in segment.size]
            granule = rng.choice([1, 2, 4, 8, 8])
            step = [rng.choice([0, 1, granule, 2 * granule]), *(rng.choice([0, 0, 0, 1]) for _ in segment.size[1:])]
            for thread in range(params.threads):
                for d, size in enumerate(segment.size):
                    coordinate = start[d] // (granule if d == 0 else 1) * (granule if d == 0 else 1) + thread * step[d]
                    if rng.random() < 0.1:
                        coordinate = rng.choice([size - 1, size, -4, -1, rng.getrandbits(32), rng.randrange(size)])
                    registers[thread][first + d] = coordinate % (1 << 32)
    return Threads(registers, [rng.getrandbits(PREDICATES) for _ in range(params.threads)])


def random_job(rng, params, segment, number):
    kind = [JobKind.MULTIPLY, JobKind.LOAD, JobKind.MULTIPLY, JobKind.STORE, JobKind.MULTIPLY][number % 5]
    if segment.element_log2 == 2 and kind == JobKind.MULTIPLY:
        kind = JobKind.LOAD
    multiplies = kind == JobKind.MULTIPLY
    count = rng.randint(1, 5)
    products = [0, 1, 2, params.regs - 8, params.regs - 2, 65530]
    return {
        "kind": kind,
        "number": number,
        "segment": segment.entry(),
        "segment_number": segment.number,
        "rf": 8 * segment.number + 4 * rng.randrange(2),
        "imm": rng.choice([0, 0, 0, 8, 16, 3, 4, (1 << 32) - 8, (1 << 32) - 4]),
        "guard": rng.randrange(2),
        "predicate": rng.randrange(PREDICATES),
        "register": rng.choice(products) if multiplies else rng.randint(0, params.regs - count),
        "count": count,
        "ka": rng.randrange(4),
        "kb": rng.randrange(4),
        "transpose": rng.randrange(2) if segment.rank > 1 or not multiplies else 0,
        "flush": int(rng.random() < 0.15),
    }


def with_rebuilds(jobs):
    """``bases_set`` and ``rebuild`` as they are issued when no register is written."""
    sets = OffsetSets()
    for job in jobs:
        by_rows = job["kind"] == JobKind.MULTIPLY and job["transpose"]
        key = (job["segment_number"], job["rf"], by_rows)
        job["bases_set"], job["rebuild"] = choice = sets.find(key)
        sets.use(choice, key, ())
    return jobs


def all_expected(params, threads, segments, jobs):
    directory = BlockDirectory()
    return [
        access for job in jobs for access in expected(params, threads, segments[job["segment_number"]], job, directory)
    ]


#: Threads, factor registers and shared memory; those that run in all modes.
BUILDS = [(13, 1, PARAMS.smem), (21, 2, PARAMS.smem), (13, 2, PACED), (4, 2, PARAMS.smem), (8, 2, PACED)]


@grid(lambda build, mode: build in BUILDS[: 3 if mode in ("both", "stall") else 1], build=BUILDS, mode=STALL_MODES)
def test_random_jobs(mode, build):
    threads, factor_regs, smem = build
    params = PARAMS.replace(factor_regs=factor_regs, threads=threads, smem=smem)
    rng = random.Random(f"{SEED} {mode} {threads}")
    segments = [random_segment(rng, params, number, element_log2=number % 3) for number in range(5)]
    state = random_threads(rng, params, segments)
    jobs, kinds = [], set()
    while len(jobs) < 16 or not {AccessKind.COLUMNS, AccessKind.LOAD, AccessKind.STORE} <= kinds:
        segment = rng.choice(segments)
        for _ in range(rng.randint(1, 3)):  # often the same offsets again
            jobs.append(random_job(rng, params, segment, len(jobs)))
        with_rebuilds(jobs)
        wanted = all_expected(params, state, segments, jobs)
        kinds = {access["kind"] for access in wanted}
    stalls = STALL_MODES[mode]
    Bench(params, state, busy=stalls["stall"]).run(jobs, wanted, **stalls)


def multiplies(segment, count, **fields):
    """Jobs of kind MULTIPLY one after the other, as a program has them that goes along dimension 0."""
    job = {"kind": JobKind.MULTIPLY, "segment": segment.entry(), "segment_number": segment.number, "rf": 0, "guard": 0}
    job |= {"predicate": 0, "register": 0, "count": 1, "flush": 0} | fields
    return with_rebuilds([{**job, "number": number, "imm": 16 * number} for number in range(count)])


@pytest.mark.parametrize("transpose", [0, 1])
@cases("ka, kb, smem, pace", [(1, 1, PARAMS.smem, 1), (4, 4, PARAMS.smem, 1), (1, 1, PACED, 2)],
       [(*merge, PARAMS.smem, 1) for merge in ((1, 2), (2, 2), (3, 1), (3, 3))])  # fmt: skip
def test_rate(ka, kb, smem, pace, transpose):
    """An access a cycle, or every other cycle."""
    params = PARAMS.replace(threads=16, smem=smem)
    segment = Segment(0, 0, (200, 40), (6, 3), paged=True)
    # K along dimension 0: thread j has column j. Along dimension 1: sixteen columns side by side.
    registers = [[*((thread, 0) if transpose else (0, thread)), *[0] * (params.regs - 2)] for thread in range(16)]
    state = Threads(registers, [0] * 16)
    jobs = multiplies(segment, 6, ka=ka - 1, kb=kb - 1, transpose=transpose)
    wanted = all_expected(params, state, [segment], jobs)
    assert len([access for access in wanted if access["kind"] == AccessKind.FILL]) == 6 * kb * transpose
    accepted, cycles = Bench(params, state).run(jobs, wanted)
    # Paced stages may wait a cycle for one another where a job begins.
    assert 0 <= cycles[-1] - cycles[0] - pace * (len(wanted) - 1) <= (pace - 1) * len(jobs) // 2
    assert cycles[0] - accepted[0] == LATENCY + segment.rank * params.groups + BUILD_CYCLES


@pytest.mark.parametrize("blocks", [2, BASES_SETS])
def test_no_gap_where_blocks_of_columns_take_turns(blocks):
    params = PARAMS.replace(threads=16)
    segment = Segment(0, 0, (200, 64), (6, 3), paged=True)
    rounds = 4
    # Block b: offsets from register 2·b on, columns 16·b to 16·b + 15. An mm with ka = kb = 2 has eight steps.
    registers = [
        [*(value for block in range(blocks) for value in (0, 16 * block + thread)), *[0] * (params.regs - 2 * blocks)]
        for thread in range(16)
    ]
    state = Threads(registers, [0] * 16)
    jobs = multiplies(segment, rounds * blocks, ka=1, kb=1, transpose=0)
    for job in jobs:
        job |= {"rf": 2 * (job["number"] % blocks), "imm": 16 * (job["number"] // blocks)}
    with_rebuilds(jobs)
    wanted = all_expected(params, state, [segment], jobs)
    _, cycles = Bench(params, state).run(jobs, wanted)
    ends = [cycle for cycle, access in zip(cycles, wanted, strict=True) if access["last"]]
    steady = len(wanted) // rounds * (rounds - 1)
    assert ends[-1] - ends[blocks - 1] == steady  # an access a cycle from the second round on


def test_loads_and_stores_one_word_a_cycle():
    params = PARAMS.replace(threads=16)
    segment = Segment(0, 2, (256,), (8,), paged=False)
    state = Threads([[8 * thread, *range(1, params.regs)] for thread in range(16)], [0] * 16)
    jobs = multiplies(segment, 6, ka=0, kb=0, transpose=0)
    for job in jobs:
        job |= {"kind": JobKind.STORE if job["number"] % 2 else JobKind.LOAD, "register": 1, "count": 5, "imm": 0}
    wanted = all_expected(params, state, [segment], jobs)
    _, cycles = Bench(params, state).run(jobs, wanted)
    assert cycles[-1] - cycles[0] == len(wanted) - 1 == 6 * 5 * params.groups - 1
