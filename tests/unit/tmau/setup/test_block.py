"""Commands on blocks, fields and groups: rules and jobs against golden; waits; order, latency, rate."""

import random

import pytest

from support.streams import transact
from tilewright.golden import delivery_bits
from tilewright.golden.tmau.block import check_block
from tilewright.golden.tmau.checks import Windows, check_command
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.block import BlockSetup
from tilewright.spec import BLOCK, COMMAND_FIELD, DESCRIPTOR, FORMATS, Element, Error, Opcode, Reduction, Space
from tilewright.spec.cluster import ClusterError
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes
WINDOWS = Windows(global_=(4096, 15 * 4096 - 1), shared=(256, 30 * 128 - 1))
CONFINED = {
    "confine_global": 1,
    "global_first": 1,
    "global_last": 14,
    "confine_shared": 1,
    "shared_first": 2,
    "shared_last": 29,
}


def packed(opcode, delivery=0, **fields):
    return command_layout().from_bits(FORMATS[opcode].pack(opcode=opcode, **fields) | delivery)


def block_jobs(c):
    """The jobs of a COPY_BLOCK: the members that are not zero."""
    source, destination = (c[name] % (1 << PARAMS.addr_width) for name in ("source", "destination"))
    size = c["size"]
    to_shared = c["destination_space"] == Space.SHARED
    last = {"bytes": size, "reduction": c["reduction"]}
    if to_shared:
        last |= {"signal": c["signal"]}
    if c["source_space"] == Space.GLOBAL and to_shared:
        return [{"address": source, "smem": destination, **last}]
    if c["source_space"] == Space.SHARED and not to_shared:
        return [{"store": 1, "address": destination, "smem": source, **last}]
    target = {"target": c["destination"] % (1 << PARAMS.addr_width)}
    if to_shared:
        return [{"store": 1, "smem": source, "loop": 1, **target, **last}]
    return [{"address": source, "stage": 1, **target, **last}]


def replace_jobs(c):
    field = DESCRIPTOR.fields[c["field"]]
    lsb = field.lsbs[c["index"]]
    word = {"store": 1, "immediate": 1, "address": c["descriptor"] + lsb // 64 * 8}
    mask = (1 << field.width) - 1 << lsb % 64
    return [
        {**word, "quiet": 1, "reduction": Reduction.AND, "fill": mask ^ (1 << 64) - 1},
        {**word, "reduction": Reduction.OR, "fill": c["value"] << lsb % 64},
    ]


def expected(word, windows, features=PARAMS.features):
    """What must come out: a list of jobs, or an error record without its tag."""
    opcode = Opcode(word.opcode)
    c = FORMATS[opcode].unpack(word.as_bits())
    if opcode == Opcode.REPLACE:
        refusal = check_command(c, None, SMEM, windows, PARAMS.addr_width)
    else:
        refusal = check_block(c, SMEM, windows, PARAMS.addr_width, features)
    if refusal:
        return refusal.code, refusal.field
    if opcode == Opcode.REPLACE:
        return replace_jobs(c)
    return block_jobs(c) if opcode == Opcode.COPY_BLOCK and c["size"] else (Error.NONE, 0)


def members_of(job):
    """The members of a job that are not zero, as far as they mean anything."""
    names = ["store", "address", "smem", "loop", "stage", "quiet", "immediate", "reduction", "fill"]
    names += [] if job.quiet else ["bytes", "signal"]
    names += ["target"] if job.loop or job.stage else []
    return {name: getattr(job, name) for name in names if getattr(job, name)}


def random_word(rng, tag):
    if rng.random() < 0.3:
        number = rng.choice([*range(len(DESCRIPTOR.fields)), 20, 255])
        field = DESCRIPTOR.fields[number % len(DESCRIPTOR.fields)]
        value = rng.getrandbits(field.width) | (rng.random() < 0.1) << min(field.width, 63)
        index = rng.randrange(max(field.count, 1)) if rng.random() < 0.8 else rng.randrange(8)
        where = 64 * rng.randrange(64, 900)
        return packed(Opcode.REPLACE, tag=tag, field=number, index=index, value=value, descriptor=where)
    size = rng.choice([0, 16, 16 * rng.randint(1, 20), SMEM, SMEM + 16, rng.randint(1, 300)])

    def address(space):
        if space == Space.SHARED:
            near = rng.choice([0, 256, SMEM - size, SMEM - 256 - size, SMEM, rng.randrange(SMEM)])
        else:
            near = rng.choice([4096, 15 * 4096 - size, (1 << PARAMS.addr_width) - size, rng.randrange(1 << 16)])
        near = max(near, 0) & ~(15 if rng.random() < 0.95 else 7)
        return near | (rng.random() < 0.03) << rng.randrange(12, 64)

    spaces = rng.randrange(2), rng.randrange(2)
    source, destination = address(spaces[0]), address(spaces[1])
    if rng.random() < 0.2:
        destination = source + rng.choice([0, size, 16, max(size - 16, 0)])
    return packed(
        rng.choice([Opcode.COPY_BLOCK] * 5 + [Opcode.PREFETCH_BLOCK]),
        tag=tag,
        signal=rng.randrange(2),
        reduction=rng.choice([0, 0, 0, rng.randrange(16), Reduction.ADD]),
        element=rng.randrange(15),
        size=size,
        barrier=rng.choice([8 * rng.randrange(SMEM // 8), 8 * rng.randrange(SMEM // 8), rng.getrandbits(13)]),
        source_space=spaces[0],
        destination_space=spaces[1],
        source=source,
        destination=destination & (1 << 64) - 1,
    )


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_rules_and_jobs(mode, confined):
    rng = random.Random(f"{SEED}{mode}{confined}")
    words = [random_word(rng, tag) for tag in range(1, 201)]
    codes = compare(words, WINDOWS if confined else Windows(), mode)
    assert codes >= {Error.NONE, Error.REDUCTION, Error.BLOCK_ALIGNMENT, Error.BLOCK_RANGE, Error.OVERLAP, Error.FIELD}
    assert (Error.WINDOW in codes) == confined


#: Features of hardware that has only one of them, and of hardware that lacks one.
BUILT = {"stores": ("stores",)} | {
    name: tuple(feature for feature in FEATURES if feature != name)
    for name in ("local_copies", "reductions_shared", "reductions_global", "reductions_float")
}


@pytest.mark.parametrize("name", BUILT)
def test_rules_for_fewer_features(name):
    """Without windows last bytes are found in as many bits as the size of shared memory needs."""
    rng = random.Random(SEED)
    words = [word for tag in range(1, 601) if (word := random_word(rng, tag)).opcode != Opcode.REPLACE]
    codes = compare(words, Windows(), "none", BUILT[name])
    assert codes >= {Error.NONE, Error.UNSUPPORTED, Error.BLOCK_ALIGNMENT, Error.BLOCK_RANGE}


def compare(words, windows, mode, features=PARAMS.features):
    """Jobs and ends of all words beside golden; the codes of the ends."""
    dut = elaborated(BlockSetup, PARAMS.replace(features=features))
    outcomes = {word.tag: expected(word, windows, features) for word in words}
    jobs = [(tag, job) for tag, outcome in outcomes.items() if isinstance(outcome, list) for job in outcome]
    ends = [(tag, outcome) for tag, outcome in outcomes.items() if isinstance(outcome, tuple)]
    elements = {word.tag: word for word in words}

    counts = {"jobs": len(jobs), "finished": len(ends)}
    inputs = {"windows": CONFINED if windows == WINDOWS else {}}
    came, _ = transact(dut, {"i": words}, counts, mode, inputs=inputs)
    for job, (tag, wanted) in zip(came["jobs"], jobs, strict=True):
        assert job.tag == tag and members_of(job) == {k: v for k, v in wanted.items() if v}, tag
        if job.signal:
            assert job.barrier == elements[tag].barrier
        if job.immediate:
            assert (job.element, job.size) == (Element.U64, 8)
        elif job.reduction:
            assert job.element == BLOCK.unpack(elements[tag].as_bits())["element"]
    for record, (tag, wanted) in zip(came["finished"], ends, strict=True):
        assert (record.tag, (record.code, record.field), record.address) == (tag, wanted, 0)
    return {outcome[0] for _, outcome in ends}


def test_every_field_can_be_replaced():
    """A descriptor of random bits, changed by the two reductions, reads as if packed with the new number."""
    dut = elaborated(BlockSetup, PARAMS)
    rng = random.Random(SEED)
    elements = [(n, i) for n, field in enumerate(DESCRIPTOR.fields) for i in range(max(field.count, 1))]
    values = [rng.getrandbits(DESCRIPTOR.fields[number].width) for number, _ in elements]
    words = [
        packed(Opcode.REPLACE, field=number, index=index, value=value, descriptor=4096)
        for (number, index), value in zip(elements, values, strict=True)
    ]

    came, cycles = transact(dut, {"i": words}, {"jobs": 2 * len(words)})
    pairs = [3 + 3 * number + second for number in range(len(words)) for second in (0, 1)]
    assert cycles["jobs"] == pairs, "latency 3, two jobs one after the other, and a cycle until the next command"
    for k, ((number, index), value) in enumerate(zip(elements, values, strict=True)):
        clears, sets = came["jobs"][2 * k], came["jobs"][2 * k + 1]
        assert clears.address == sets.address
        shift = 8 * (sets.address - 4096)
        before = rng.getrandbits(DESCRIPTOR.bits)
        inside = before >> shift & (1 << 64) - 1
        after = before ^ (inside ^ (inside & clears.fill | sets.fill)) << shift
        field = DESCRIPTOR.fields[number]
        mask = (1 << field.width) - 1 << field.lsbs[index]
        assert after == before & ~mask | value << field.lsbs[index]


def test_waits():
    """A WAIT ends when few enough groups are left, a COMMIT when there is space, WAIT_ALL when nothing moves."""
    dut = elaborated(BlockSetup, PARAMS)

    async def ends(ctx):
        """Whether a command ends in this cycle or the next ones."""
        ctx.set(dut.finished.ready, 1)
        for _ in range(5):
            if ctx.get(dut.finished.valid):
                tag, commit = ctx.get(dut.finished.payload.tag), ctx.get(dut.commit)
                await ctx.tick()
                ctx.set(dut.finished.ready, 0)
                return tag, commit
            await ctx.tick()
        return None

    async def run(ctx):
        ctx.set(dut.unfinished, 3)
        ctx.set(dut.unread, 3)
        assert not ctx.get(dut.busy)
        await send(ctx, dut.i, [packed(Opcode.WAIT, tag=1, count=2)])
        assert await ends(ctx) is None and ctx.get(dut.busy)
        ctx.set(dut.unread, 0)
        assert await ends(ctx) is None
        ctx.set(dut.unfinished, 2)
        assert await ends(ctx) == (1, 0)
        assert not ctx.get(dut.busy)

        await send(ctx, dut.i, [packed(Opcode.WAIT, tag=2, count=0, read=1)])
        assert await ends(ctx) == (2, 0)

        ctx.set(dut.groups_full, 1)
        await send(ctx, dut.i, [packed(Opcode.COMMIT, tag=3), packed(Opcode.WAIT_ALL, tag=4)])
        assert await ends(ctx) is None
        ctx.set(dut.groups_full, 0)
        assert await ends(ctx) == (3, 1)
        assert await ends(ctx) is None
        ctx.set(dut.still, 1)
        assert await ends(ctx) == (4, 0)

    simulate(dut, run, background=[watch_stream(dut.finished)])


def test_a_wait_holds_up_what_is_behind():
    dut = elaborated(BlockSetup, PARAMS)
    copy = packed(Opcode.COPY_BLOCK, size=16, destination_space=Space.SHARED)

    async def source(ctx):
        await send(ctx, dut.i, [copy, packed(Opcode.WAIT_ALL), copy])

    async def run(ctx):
        await receive(ctx, dut.jobs, 1)
        ctx.set(dut.jobs.ready, 1)
        for _ in range(10):
            assert not ctx.get(dut.jobs.valid)
            await ctx.tick()
        ctx.set(dut.still, 1)
        await receive(ctx, dut.finished, 1)
        await receive(ctx, dut.jobs, 1)

    simulate(dut, source, run)


def test_size_zero_signals_nothing_and_is_still_checked():
    fields = {"size": 0, "source": 64, "source_space": 1, "destination": SMEM, "destination_space": 1, "signal": 1}
    assert expected(packed(Opcode.COPY_BLOCK, **fields), None) == (Error.NONE, 0)
    wrong = packed(Opcode.COPY_BLOCK, **fields | {"destination": SMEM + 16})
    dut = elaborated(BlockSetup, PARAMS)
    came, _ = transact(dut, {"i": [packed(Opcode.COPY_BLOCK, **fields), wrong]}, {"finished": 2})
    assert [record.code for record in came["finished"]] == [Error.NONE, Error.BLOCK_RANGE]
    assert came["finished"][1].field == COMMAND_FIELD + BLOCK.index("destination")


def test_prefetches_leave_as_jobs_and_end_here():
    """If a cache takes them, and the block fits shared memory, whatever lies in fields that mean nothing."""
    odd = {"source_space": 1, "destination_space": 1, "signal": 1, "reduction": Reduction.ADD}
    sizes = [64, 0, SMEM, SMEM + 16, 24]
    words = [packed(Opcode.PREFETCH_BLOCK, tag=tag, source=0x800, size=size, **odd) for tag, size in enumerate(sizes)]
    dut = elaborated(BlockSetup, PARAMS.replace(prefetches=True))
    came, _ = transact(dut, {"i": words}, {"jobs": 2, "finished": 5}, "stall")
    assert [(job.tag, job.size, job.address) for job in came["jobs"]] == [(0, 64, 0x800), (2, SMEM, 0x800)]
    assert all(job.prefetch and not (job.store or job.loop or job.stage or job.quiet) for job in came["jobs"])
    codes = [Error.BLOCK_ALIGNMENT if tag == 4 else Error.NONE for tag in range(5)]
    assert [(end.tag, end.code) for end in came["finished"]] == list(enumerate(codes))


def test_another_core_is_asked_before_it_is_read():
    """It is asked for the lines of the whole source, once; its answer makes a job of the command, or its end."""
    dut = elaborated(BlockSetup, PARAMS.replace(cores=3))
    fields = {"size": 160, "source": 240, "source_space": 1, "destination": 0, "destination_space": 1}
    words = [packed(Opcode.COPY_BLOCK, delivery_bits(source_core=source), tag=tag, **fields)
             for tag, source in enumerate([2, 2, 1, 0], 1)]  # fmt: skip
    request, answer, asked = dut.loans.requests, dut.loans.answer, []

    async def source(ctx):
        ctx.set(dut.windows, {"own": 0b010, "allowed": 0b111})
        await send(ctx, dut.i, words)

    async def lender(ctx):
        for granted in (1, 0, 1):
            asked.extend((await receive(ctx, request, 1))[0])
            await ctx.tick().repeat(3)
            assert not ctx.get(request.valid)
            ctx.set(answer, {"answers": 1, "granted": granted})
            await ctx.tick()
            ctx.set(answer, {})

    async def jobs(ctx):
        got, _ = await receive(ctx, dut.jobs, 3)
        assert [(job.tag, job.owner, job.smem, job.size) for job in got] == [
            (1, 0b100, 240, 160), (3, 0, 240, 160), (4, 0b001, 240, 160)]  # fmt: skip

    async def ends(ctx):
        (record,), _ = await receive(ctx, dut.finished, 1)
        assert (record.tag, record.code, record.field, record.address) == (2, ClusterError.REMOTE, 0, 0b100)

    simulate(dut, source, lender, jobs, ends, background=[watch_stream(request)])
    assert [(item.owner, item.asks, item.row, item.last, item.tag) for item in asked] == [
        (0b100, 1, 1, 3, 1), (0b100, 1, 1, 3, 2), (0b001, 1, 1, 3, 4)]  # fmt: skip
