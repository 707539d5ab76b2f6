"""The whole shared memory: random traffic on every port against the golden barrier and a byte image."""

import random
from collections import Counter, defaultdict

import pytest
from amaranth.hdl import Value

from support.streams import counting, transact
from tilewright.golden.smem import Barrier
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.top import SharedMemory
from tilewright.spec import BarrierOp
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, unpacker

SEED = 11
PARAMS = SmemParams(1024)
#: Two in one chunk, others in the same bank at other rows, one in another bank.
BARRIERS = [0x000, 0x008, 0x080, 0x188, 0x210]
OPERATIONS = 550  # of the processor, in each of four stall modes
LANDED = 150  # transfers beside them; with `random_operations` about as many bytes land as are expected
LINES = 750
READS = 150  # of the consumer, and accesses of the host


def is_barrier(byte):
    return byte & ~7 in BARRIERS


#: The bits of each chunk that are not part of a barrier.
PLAIN_BITS = [sum(0xFF << 8 * b for b in range(16) if not is_barrier(16 * chunk + b)) for chunk in range(64)]


class Model:
    """The expected values at the ports, from the handshakes of each cycle."""

    def __init__(self):
        self.barriers = {address: Barrier() for address in BARRIERS}
        self.results, self.flips, self.errors = [], {}, {}
        self.versions = defaultdict(lambda: [(-1, 0)])  # chunk -> (cycle of the write, contents)
        self.outcomes = Counter()

    def operate(self, cycle, op, address, value):
        """An operation accepted in ``cycle``; its strobes come two cycles later. Returns (done, error)."""
        barrier = self.barriers.get(address)
        try:
            if barrier is None:
                raise ValueError("misaligned")
            phase = barrier.phase
            done, error = barrier.apply(op, value), 0
            if op not in (BarrierOp.INIT, BarrierOp.TRY_WAIT) and barrier.phase != phase:
                self.flips[cycle + 2] = address
        except ValueError:
            done, error = False, 1
            self.errors[cycle + 2] = address
        self.outcomes[int(op), int(done), error] += 1
        return int(done), error

    def write(self, cycle, byte, data, strobe):
        """Bytes written in ``cycle`` to one chunk, from byte address ``byte`` on."""
        mask = sum(0xFF << 8 * b for b in range(16) if strobe >> b & 1)
        if mask:
            contents = self.versions[byte >> 4][-1][1] & ~mask | data & mask
            self.versions[byte >> 4].append((cycle, contents))

    def possible(self, chunk, asked, answered):
        """Contents of ``chunk`` between two cycles, without barriers."""
        versions = self.versions[chunk]
        before = max(i for i, (cycle, _) in enumerate(versions) if cycle < asked)
        return {contents & PLAIN_BITS[chunk] for cycle, contents in versions[before:] if cycle < answered}


def random_operations(rng, count):
    """Mostly sensible, so that phases complete; some at the edges; some misaligned or unknown."""
    yield from ({"op": BarrierOp.INIT, "address": address, "value": 2} for address in BARRIERS)
    for _ in range(count - len(BARRIERS)):
        op = rng.choices([0, 1, 2, 3, 4, 6], [6, 30, 35, 5, 15, 1])[0]
        value = rng.choice([1, 1, 1, 2, 3]) if op < 2 else 16
        if op == BarrierOp.TRY_WAIT:
            value = rng.randrange(2)
        if rng.random() < 0.08:
            value = rng.choice([0, (1 << 20) - 1, 1 << 20, (1 << 21) - 1])
        address = rng.choice(BARRIERS) | (rng.choice([1, 4]) if rng.random() < 0.03 else 0)
        yield {"op": op, "address": address, "value": value}


def random_lines(rng, count):
    for _ in range(count):
        row = rng.randrange(8)
        strobe = rng.choice([(1 << 128) - 1, rng.getrandbits(128), 0xFFFF << 16 * rng.randrange(8)])
        plain = sum(1 << b for b in range(128) if not is_barrier(128 * row + b))
        yield {"row": row, "data": rng.getrandbits(1024), "strobe": strobe & plain}


def random_reads(rng, count):
    for _ in range(count):
        yield {"lanes": rng.getrandbits(8), "chunks": [rng.randrange(64) for _ in range(8)]}


def random_host_requests(rng, count):
    words = [address for address in range(0, 1024, 4) if not is_barrier(address)]
    for _ in range(count):
        write = rng.getrandbits(1)
        yield {"address": rng.choice(words), "write": write, "data": rng.getrandbits(32), "strobe": rng.getrandbits(4)}


def follow(dut, model, strobes):
    """A background testbench that gives every handshake to the model and checks answers, strobes and read data."""
    names = ("barriers", "barrier_results", "reads", "read_data")
    ports = {"writes": dut.mover.writes, "landed": dut.mover.landed} | {name: getattr(dut, name) for name in names}
    ports |= {"host_requests": dut.host.requests, "host_responses": dut.host.answers}
    signals = [signal for port in ports.values() for signal in (port.valid & port.ready, Value.cast(port.payload))]
    signals += [dut.flip.valid, dut.flip.address, dut.mover.refused.valid, dut.mover.refused.address, dut.stall_stb]
    unpack = {name: unpacker(port.payload.shape()) for name, port in ports.items()}
    asked = {"reads": [], "host": []}

    async def watch(ctx):
        cycle = 0
        async for _, _, *values in ctx.tick().sample(*signals):
            payloads = {port: unpack[port](values[2 * i + 1]) for i, port in enumerate(ports) if values[2 * i]}
            flip, flip_address, error, error_address, stall = values[2 * len(ports) :]

            if "host_requests" in payloads:  # it had the banks in the previous cycle
                access = payloads["host_requests"]
                if access.write:
                    place = access.address & 12
                    model.write(cycle - 1, access.address & ~15, access.data << 8 * place, access.strobe << place)
                asked["host"].append((cycle - 1, access))
            if payloads.get("writes") is not None:
                line = payloads["writes"]
                for bank in range(8):
                    chunk = line.data >> 128 * bank & (1 << 128) - 1
                    model.write(cycle, 128 * line.row + 16 * bank, chunk, line.strobe >> 16 * bank & 0xFFFF)
            assert not ("landed" in payloads and "barriers" in payloads)
            if "landed" in payloads:
                model.operate(cycle, BarrierOp.COMPLETE_TX, payloads["landed"].barrier, payloads["landed"].bytes)
            if "barriers" in payloads:
                operation = payloads["barriers"]
                model.results.append((cycle, model.operate(cycle, operation.op, operation.address, operation.value)))
            if "barrier_results" in payloads:
                since, result = model.results.pop(0)
                assert (payloads["barrier_results"].done, payloads["barrier_results"].error) == result
                assert cycle >= since + 2
            assert (flip_address if flip else None) == model.flips.get(cycle)
            assert (error_address if error else None) == model.errors.get(cycle)

            if "host_responses" in payloads:
                since, access = asked["host"].pop(0)
                if not access.write:
                    contents = model.possible(access.address >> 4, since, since + 1)
                    words = {chunk >> 8 * (access.address & 12) & 0xFFFF_FFFF for chunk in contents}
                    assert payloads["host_responses"].data in words
            if "read_data" in payloads:
                since, read = asked["reads"].pop(0)
                for lane in range(8):
                    chunk = read.chunks[lane]
                    if read.lanes >> lane & 1:
                        assert payloads["read_data"][lane] & PLAIN_BITS[chunk] in model.possible(chunk, since, cycle)
            if "reads" in payloads:
                asked["reads"].append((cycle, payloads["reads"]))
            strobes["stall"] += stall
            cycle += 1

    return watch


@pytest.mark.parametrize("mode", STALL_MODES)
def test_random_traffic(mode):
    rng = random.Random(SEED)
    dut, model, strobes = elaborated(SharedMemory, PARAMS), Model(), Counter()
    operations = list(random_operations(rng, OPERATIONS))
    landed = [{"barrier": rng.choice(BARRIERS), "bytes": 16} for _ in range(LANDED)]
    reads, accesses = list(random_reads(rng, READS)), list(random_host_requests(rng, READS))

    async def check_contents(ctx):
        for address, barrier in model.barriers.items():
            chunk = ctx.get(dut.banks.memories[(address >> 4) % 8].data[address >> 7])
            assert chunk >> 8 * (address & 8) & (1 << 64) - 1 == barrier.pack()
        for chunk, plain in enumerate(PLAIN_BITS):
            stored = ctx.get(dut.banks.memories[chunk % 8].data[chunk // 8])
            assert stored & plain == model.versions[chunk][-1][1] & plain

    transact(
        dut,
        {
            "mover.writes": random_lines(rng, LINES), "mover.landed": landed, "barriers": operations, "reads": reads,
            "host.requests": accesses,
        },
        {"barrier_results": len(operations), "read_data": len(reads), "host.answers": len(accesses)},
        mode, seed=SEED, pauses={"mover.landed": 0.85}, background=[follow(dut, model, strobes)],
        settle=20, then=check_contents, deadline=40 * OPERATIONS,
    )  # fmt: skip
    assert not model.results
    assert 0 < strobes["stall"] <= len(operations) + len(landed) + len(accesses)
    counting = (BarrierOp.ARRIVE, BarrierOp.EXPECT_TX, BarrierOp.COMPLETE_TX)
    wanted = {(int(op), 1, 0) for op in (*counting, BarrierOp.TRY_WAIT)}
    wanted |= {(int(op), 0, 0) for op in BarrierOp} | {(int(op), 0, 1) for op in (BarrierOp.INIT, *counting)}
    assert wanted <= set(model.outcomes)


@pytest.mark.parametrize(("swizzled", "cycles"), [(True, 1), (False, 8)], ids=["swizzle 128", "no swizzle"])
def test_a_column_of_eight_chunks(swizzled, cycles):
    """One chunk in each of eight lines: with the 128-byte swizzle they are in eight banks, without in one."""
    dut = elaborated(SharedMemory, PARAMS)
    count = 10
    chunks = [8 * row + (3 ^ row if swizzled else 3) for row in range(8)]
    counts, start = Counter(), {"reads": 8, "read_data": 8}
    lines = [sum((16 * row + bank) << 128 * bank for bank in range(8)) for row in range(8)]
    fill = [{"row": row, "data": line, "strobe": (1 << 128) - 1} for row, line in enumerate(lines)]
    send = {"mover.writes": fill, "reads": [{"lanes": 0xFF, "chunks": chunks}] * count}
    background = [counting(counts, conflicts=dut.conflict_stb)]
    payloads, taken = transact(dut, send, {"read_data": count}, starts=start, background=background)
    for answer in payloads["read_data"]:
        assert [answer[lane] for lane in range(8)] == [16 * (chunk >> 3) + (chunk & 7) for chunk in chunks]
    assert taken["mover.writes"] == list(range(8))
    assert taken["reads"] == [8, *range(8 + cycles, 8 + cycles * count, cycles)]
    assert taken["read_data"] == [9 + cycles * (n + 1) for n in range(count)]
    assert counts["conflicts"] == (cycles - 1) * count


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "beside the consumer"])
def test_rate_of_line_reads(busy):
    dut = elaborated(SharedMemory, PARAMS)
    lines = [random.Random(row).getrandbits(1024) for row in range(8)]
    lines_read, taken = [], {}

    async def drive(ctx):
        for row, line in enumerate(lines):
            await send(ctx, dut.mover.writes, [{"row": row, "data": line, "strobe": (1 << 128) - 1}])
        if busy:
            ctx.set(dut.read_data.ready, 1)
            ctx.set(dut.reads.payload, {"lanes": 1, "chunks": [0] * 8})
            ctx.set(dut.reads.valid, 1)
            await ctx.tick().repeat(4)
        taken["cycles"] = await send(ctx, dut.mover.fetch.rows, [n % 8 for n in range(24)])
        await ctx.tick()

    async def watch(ctx):
        fetched = False
        fetch = dut.mover.fetch
        async for _, _, goes, line in ctx.tick().sample(fetch.rows.valid & fetch.rows.ready, fetch.line):
            if fetched:
                lines_read.append(line)
            fetched = goes

    simulate(dut, drive, background=[watch])
    assert lines_read == lines * 3
    assert taken["cycles"][-1] in ((46, 47) if busy else (23,))
