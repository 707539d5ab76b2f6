"""The neighbours of the convolution engine's read-out: array, gatherers and shared memory."""

import random
from collections import deque

import numpy as np
from amaranth.hdl import Value

from support.conv_plan import plan_of
from tilewright.golden.conv.rows import Rows, lane_groups
from tilewright.hw.conv.params import FOLDS
from tilewright.spec.conv import CHANNELS_AT_ONCE
from tilewright.verify.pysim.streams import packed, set_together, unpacker

__all__ = ["ResultsWorld", "gatherer"]


class ResultsWorld:
    """The neighbours of a ``Results``: its ``processes`` run in the background of a simulation.

    Parameters
    ----------
    dut : Results
    params : ConvUnitParams
    seed : int
    stall : dict of str to float
        Probabilities of a pause in each cycle: of ``tiles`` (none is complete), ``gather`` (no request is taken),
        ``scatter`` (no write is taken).
    latency : int
        Cycles from a request to its answer; to twice as many where ``gather`` has pauses.

    Attributes
    ----------
    smem : uint8 array
    writes : list of (int, int)
        Cycle and bytes of each write.
    cycle : int
    """

    def __init__(self, dut, params, *, seed=0, stall=None, latency=6):
        self.dut, self.params = dut, params
        self.smem = np.zeros(params.smem.size_bytes, np.uint8)
        self.stall = {"tiles": 0.0, "gather": 0.0, "scatter": 0.0} | (stall or {})
        self.latency, self._seed = latency, seed
        self._tiles, self._banks = deque(), [None] * params.accumulator_banks
        self._requests = {"table": deque(), "addend": deque()}
        self.clear()
        self.processes = [
            self._clock,
            self._array,
            *(self._gatherer(name, number) for number, name in enumerate(self._requests)),
            self._scatter,
        ]

    def clear(self):
        """Forgets what is under way, as a reset does."""
        self.cycle, self.writes, self._shown = 0, [], False
        self._bank, self._banks = 0, [None] * self.params.accumulator_banks
        for waiting in (self._tiles, *self._requests.values()):
            waiting.clear()

    def add_job(self, fields, accumulators):
        """Appends the tiles of a job to the waiting ones.

        Parameters
        ----------
        accumulators : uint32 array of shape (points, channels)
        """
        self._tiles.extend(_tiles(fields, accumulators, self.params.conv))

    async def _clock(self, ctx):
        async for _ in ctx.tick():
            self.cycle += 1

    async def _array(self, ctx):
        """Accumulators of the tiles; a bank that is free has anything."""
        dut, rng, generator = self.dut, random.Random(self._seed), np.random.default_rng(self._seed)
        unpack = unpacker(dut.read.shape())
        results, lanes = self.params.conv.results, deque([0, 0])
        released = deque([None, None])
        async for _, _, ready, bits in ctx.tick().sample(dut.tiles.ready, Value.cast(dut.read)):
            read = unpack(bits)
            if self._shown and ready:
                released.append(self._bank)
                self._bank = (self._bank + 1) % self.params.accumulator_banks
                self._shown = False
            else:
                released.append(None)
            tile = self._banks[read.bank]
            values = generator.integers(0, 1 << 32, results, np.uint64)
            if tile is not None:
                for lane in range(results):
                    number = tile.get((read.t, read.index, read.part, lane))
                    values[lane] = values[lane] if number is None else number
            # Sums that are read in the cycle after the one in which the tile was accepted are still there.
            gone = released.popleft()
            if gone is not None:
                self._banks[gone] = None
            lanes.append(sum(int(value) << 32 * lane for lane, value in enumerate(values)))
            free = not self._shown and self._banks[self._bank] is None
            if free and self._tiles and rng.random() >= self.stall["tiles"]:
                self._banks[self._bank] = self._tiles.popleft()
                self._shown = True
            bank = self._bank if self._shown else rng.randrange(self.params.accumulator_banks)
            tiles = (dut.tiles.valid, self._shown), (dut.tiles.p, bank)
            set_together(ctx, (Value.cast(dut.acc), lanes.popleft()), *tiles)

    def _gatherer(self, name, number):
        options = {"stall": self.stall["gather"], "latency": self.latency, "seed": self._seed + number}
        port, answer = getattr(self.dut, name), getattr(self.dut, f"{name}_answer")
        return gatherer(port, answer, self.smem, requests=self._requests[name], **options)

    async def _scatter(self, ctx):
        dut, rng = self.dut, random.Random(~self._seed)
        unpack, taking = unpacker(dut.scatter.p.shape()), False
        async for _, _, valid, bits in ctx.tick().sample(dut.scatter.valid, Value.cast(dut.scatter.p)):
            if valid and taking:
                write, count = unpack(bits), 0
                for chunk, data, strobes in zip(write.chunks, write.data, write.strobes, strict=True):
                    for byte in range(16):
                        if strobes >> byte & 1:
                            self.smem[16 * chunk + byte] = data >> 8 * byte & 255
                            count += 1
                self.writes.append((self.cycle, count))
            taking = rng.random() >= self.stall["scatter"]
            ctx.set(dut.scatter.ready, taking)


def gatherer(port, answer, smem, *, stall=0.0, latency=6, seed=0, requests=None):
    """A process that answers requests for pieces from memory, in order.

    Bytes that are not read are random, and so are answers that are not valid.

    Parameters
    ----------
    port : stream of GatherLayout
    answer : stream of GatheredLayout
    smem : uint8 array
    stall : float
        Probability of not taking a request, in each cycle. If it is not 0, answers are late by up to ``latency`` more.
    latency : int
        Cycles from a request to its answer.
    seed : int
    requests : deque, optional
        Holds what has not been answered: to be cleared at a reset.
    """
    payload, requests = Value.cast(answer.payload), deque() if requests is None else requests
    tag, bits = answer.payload.shape()["tag"], len(payload)

    async def gather(ctx):
        rng, unpack, taking, cycle = random.Random(f"{seed} gather"), unpacker(port.p.shape()), False, 0
        async for _, _, valid, asked in ctx.tick().sample(port.valid, Value.cast(port.p)):
            cycle += 1
            if valid and taking:
                requests.append((cycle + latency - 1 + (rng.randrange(latency) if stall else 0), unpack(asked)))
            taking = rng.random() >= stall
            here, value = bool(requests) and requests[0][0] <= cycle, rng.getrandbits(bits)
            if here:
                request = requests.popleft()[1]
                value = _packed(request, smem, rng) | packed(tag.shape, request.tag) << tag.offset
            set_together(ctx, (port.ready, taking), (answer.valid, here), (payload, value))

    return gather


def _packed(request, smem, rng):
    """The bytes of pieces; those that are not read are anything."""
    data = bytearray(rng.randbytes(16 * len(request.pieces)))
    for number, piece in enumerate(request.pieces):
        assert piece.high <= 1 << request.size and request.size <= 4, f"{piece} of 1 << {request.size}"
        for byte in range(piece.low, piece.high):
            data[(number << request.size) + byte] = smem[(piece.address + byte) % len(smem)]
    return int.from_bytes(data, "little")


def _tiles(fields, accumulators, conv):
    """For each tile, in the order of work, the accumulators by what a read names them: (t, index, part, lane)."""
    plan, channels = plan_of(fields, conv), accumulators.shape[1]
    rows = Rows(plan, np.zeros((1, 1, 1, 1), np.uint8), None)
    if plan.shape.operation.lanes:
        many = plan.block_bytes // plan.shape.element_bytes
        for first in range(0, channels, many):
            for group in lane_groups(plan):
                lines = [[rows.points(tile)[0] for tile in group], [rows.second_points(tile)[0] for tile in group]]
                yield _lane_tile(lines, accumulators[:, first : first + many], many, conv)
        return
    many = CHANNELS_AT_ONCE * conv.slaves
    for first in range(0, channels, many):
        for number in range(plan.point_tiles):
            yield _tile(rows.points(number).ravel(), accumulators[:, first : first + many], conv)


def _tile(points, accumulators, conv):
    together, parts = max(1, conv.results // conv.slaves), max(1, conv.slaves // conv.results)
    ours, tile = conv.results // together, {}
    for place, point in enumerate(points):
        for channel, number in enumerate(accumulators[point] if point >= 0 else ()):
            t, slave = divmod(channel, conv.slaves)
            part, lane = divmod(slave, ours)
            assert part < parts
            tile[t, place - place % together, part, place % together * ours + lane] = number
    return tile


def _lane_tile(lines, accumulators, many, conv):
    """Sums of both lines of a pair in each slave; the second line begins in the middle of the accumulators."""
    tile = {}
    for half, rows in enumerate(lines):
        for slave, points in enumerate(rows):
            for place, point in enumerate(points):
                for channel, number in enumerate(accumulators[point] if point >= 0 else ()):
                    element = half * FOLDS * conv.units // 2 + place * many + channel
                    lane = element % conv.results
                    tile[0, element - lane, slave, lane] = number
    return tile
