"""The network as a whole: random transfers of all cores at once, every memory, barrier and report compared."""

import random

import numpy as np
import pytest

from tilewright.hw.cluster.network.line import LineNetwork
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BLOCK, COMMAND, COMMAND_FIELD, LINE_BYTES, Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261123
SMEM = SmemParams(2048)
CORES = 3
ALL = (1 << CORES) - 1
TRANSFERS = 25
#: The last line of each memory is added to by everyone; of the others each sender writes its own.
SHARED_ROW = SMEM.rows - 1
FIELDS = {0: (COMMAND, "smem"), 1: (BLOCK, "destination")}


def network():
    return LineNetwork(SMEM, CORES, floats=False)


def receivers_of(transfer, sender):
    return transfer["receivers"] or 1 << sender


def random_transfer(rng, sender, tag):
    """Lines of one sender's rows, or one addition to the row of all, to any cores; its end."""
    receivers = rng.randrange(0, ALL + 1)
    rows = [row for row in range(SMEM.rows - 1) if row % CORES == sender]
    common = {"receivers": receivers}
    if rng.random() < 0.3:
        operation = {"reduction": Reduction.ADD, "element": Element.U32}
        lines = [common | operation | {"row": SHARED_ROW, "data": rng.getrandbits(1024), "strobe": (1 << 128) - 1}]
    else:
        lines = [common | {"row": rng.choice(rows), "data": rng.getrandbits(1024), "strobe": rng.getrandbits(128)}
                 for _ in range(rng.randrange(0, 4))]  # fmt: skip
    end = common | {
        "tag": tag, "signal": rng.random() < 0.7, "failed": rng.random() < 0.1, "block": rng.random() < 0.5,
        "barrier": 8 * rng.randrange(SMEM.size_bytes // 8), "bytes": rng.randrange(1, 999),
    }  # fmt: skip
    return {"receivers": receivers, "lines": lines, "end": end}


class Model:
    """Shared memories, and what is to come of the transfers of each sender."""

    def __init__(self, acceptance):
        self.memories = [np.zeros((SMEM.rows, LINE_BYTES), np.uint8) for _ in range(CORES)]
        self.landed = [[] for _ in range(CORES)]
        self.refusals = [[] for _ in range(CORES)]
        self.received = [0] * CORES
        self.acceptance = acceptance

    def carry_out(self, sender, transfer):
        """Changes what the transfer changes; the mask of those that refuse it."""
        refusing = 0
        for core in range(CORES):
            if receivers_of(transfer, sender) >> core & 1 and not self._take(core, sender, transfer):
                refusing |= 1 << core
        return refusing

    def _take(self, core, sender, transfer):
        accepted = self.acceptance[core]
        end, dropped = transfer["end"], not (accepted["cores"] | 1 << core) >> sender & 1
        inside = [not accepted["confine"] or accepted["first"] <= row <= accepted["last"] for row in range(SMEM.rows)]
        taken = not dropped
        for line in transfer["lines"]:
            if taken and inside[line["row"]]:
                self._write(core, line)
            else:
                dropped = True
        astray = end["signal"] and not inside[end["barrier"] // LINE_BYTES]
        if end["failed"]:
            return True
        if dropped or astray:
            fmt, name = FIELDS[end["block"]] if dropped else (FIELDS[end["block"]][0], "barrier")
            self.refusals[core].append((end["tag"], COMMAND_FIELD + fmt.index(name)))
            return False
        if end["signal"]:
            self.landed[core].append((end["barrier"], end["bytes"]))
        self.received[core] += end["bytes"]
        return True

    def _write(self, core, line):
        data = np.frombuffer(line["data"].to_bytes(LINE_BYTES, "little"), np.uint8)
        row = self.memories[core][line["row"]]
        if line.get("reduction"):
            row.view("<u4")[:] += data.view("<u4")
        else:
            written = np.array([line["strobe"] >> k & 1 for k in range(LINE_BYTES)], bool)
            row[written] = data[written]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_against_model(mode):
    dut, rng, stalls = elaborated(network), random.Random(SEED), STALL_MODES[mode]
    print(f"seed {SEED}")
    acceptance = [
        {"cores": ALL, "confine": 0},
        {"cores": ALL & ~1, "confine": 1, "first": 3, "last": SHARED_ROW},
        {"cores": ALL, "confine": 1, "first": 0, "last": SHARED_ROW},
    ]
    model = Model([one | {"cores": one["cores"]} for one in acceptance])
    transfers = [[random_transfer(rng, sender, CORES * k + sender) for k in range(TRANSFERS)]
                 for sender in range(CORES)]  # fmt: skip
    wanted = [[model.carry_out(sender, transfer) for transfer in transfers[sender]] for sender in range(CORES)]
    memories = [np.zeros((SMEM.rows, LINE_BYTES), np.uint8) for _ in range(CORES)]
    landed, refusals = [[[] for _ in range(CORES)] for _ in range(2)]
    answers, received, sent, ended = [[] for _ in range(CORES)], [0] * CORES, [0] * CORES, [0] * CORES

    def sender(number):
        mover = dut.movers[number]

        async def run(ctx):
            own = acceptance[number] | {"cores": acceptance[number]["cores"] | 1 << number}
            ctx.set(mover.acceptance, own)
            """Lines of up to two transfers go ahead of an end."""
            for turn, transfer in enumerate(transfers[number]):
                while turn - ended[number] > 2:
                    await ctx.tick()
                lines = [line | {"turn": turn % 4} for line in transfer["lines"]]
                await send(ctx, mover.writes, lines, idle=stalls["idle"], seed=transfer["end"]["tag"])
                sent[number] += 1

        async def end(ctx):
            for turn, transfer in enumerate(transfers[number]):
                while sent[number] <= turn:
                    await ctx.tick()
                await send(ctx, mover.landed, [transfer["end"] | {"turn": turn % 4}], idle=stalls["idle"], seed=number)
                ended[number] += 1
            await ctx.tick().repeat(3)

        async def listen(ctx):
            ticks = ctx.tick().sample(mover.landed.valid & mover.landed.ready, mover.refusing, mover.refusal,
                                      mover.received)  # fmt: skip
            async for _, _, ended, refusing, refusal, count in ticks:
                if ended:
                    answers[number].append(refusing)
                if refusal.valid:
                    refusals[number].append((refusal.tag, refusal.field))
                received[number] += count

        return (run, end), listen

    def memory(number):
        port = dut.memories[number]

        async def write(ctx):
            for count in range(1 << 20):
                (line,), _ = await receive(ctx, port.writes, 1, stall=stalls["stall"], seed=count)
                data = np.frombuffer(line["data"].to_bytes(LINE_BYTES, "little"), np.uint8)
                written = np.array([line["strobe"] >> k & 1 for k in range(LINE_BYTES)], bool)
                memories[number][line["row"]][written] = data[written]

        async def count_landed(ctx):
            for count in range(1 << 20):
                (item,), _ = await receive(ctx, port.landed, 1, stall=stalls["stall"], seed=count)
                landed[number].append((item["barrier"], item["bytes"]))

        async def read(ctx):
            rng = random.Random(number)
            ticks = ctx.tick().sample(port.fetch.rows.valid & port.fetch.rows.ready, port.fetch.rows.payload)
            async for _, _, fetches, row in ticks:
                line = memories[number][row].tobytes() if fetches else rng.randbytes(LINE_BYTES)
                ctx.set(port.fetch.line, int.from_bytes(line, "little"))
                ctx.set(port.fetch.rows.ready, rng.random() >= stalls["stall"])

        return write, count_landed, read

    senders = [sender(number) for number in range(CORES)]
    background = [process for number in range(CORES) for process in memory(number)] + [listen for _, listen in senders]
    background += [watch_stream(port.writes) for port in dut.memories]
    simulate(dut, *(process for pair, _ in senders for process in pair), background=background)
    assert answers == wanted
    assert received == model.received
    for core in range(CORES):
        assert (memories[core] == model.memories[core]).all()
        assert sorted(landed[core]) == sorted(model.landed[core])
        assert sorted(refusals[core]) == sorted(model.refusals[core])
    assert any(map(any, wanted))
    assert all(model.landed)


def test_cycles():
    """From a line to both memories, and from the end behind it to its acceptance, with nothing in the way."""
    dut, first = elaborated(network), {}
    mover = dut.movers[0]

    async def run(ctx):
        for other in dut.movers:
            ctx.set(other.acceptance.cores, ALL)
        for memory in dut.memories:
            for port in (memory.writes, memory.landed):
                ctx.set(port.ready, 1)
        ctx.set(mover.writes.payload, {"row": 1, "receivers": 0b101})
        ctx.set(mover.landed.payload, {"signal": 1, "receivers": 0b101})
        ctx.set(mover.writes.valid, 1)
        events = [port for number in (0, 2) for port in (dut.memories[number].writes.valid,
                                                         dut.memories[number].landed.valid)]  # fmt: skip
        ticks = aiter(ctx.tick().sample(mover.landed.ready, *events))
        for cycle in range(12):
            _, _, ended, *seen = await anext(ticks)
            ctx.set(mover.writes.valid, 0)
            ctx.set(mover.landed.valid, not ended and "ended" not in first)
            for name, happens in zip(
                ("line 0", "landed 0", "line 2", "landed 2", "ended"), (*seen, ended), strict=True
            ):
                if happens:
                    first.setdefault(name, cycle)

    simulate(dut, run)
    assert first == {"line 0": 3, "line 2": 3, "landed 0": 5, "landed 2": 5, "ended": 7}


def test_cycles_of_a_loan():
    """From a request to the line of another core."""
    dut = elaborated(network)
    loans, memory = dut.movers[0].loans, dut.memories[2]

    async def run(ctx):
        ctx.set(dut.movers[2].acceptance.cores, 0b001)
        ctx.set(memory.fetch.rows.ready, 1)
        ctx.set(memory.fetch.line, 77)
        ctx.set(loans.requests.payload, {"owner": 0b100, "row": 3, "last": 3})
        ctx.set(loans.requests.valid, 1)
        ticks = aiter(ctx.tick().sample(loans.answer, memory.fetch.rows.valid, memory.fetch.rows.payload))
        for cycle in range(6):
            _, _, answer, fetches, row = await anext(ticks)
            ctx.set(loans.requests.valid, 0)
            assert fetches == (cycle == 2) and (row == 3 or not fetches)
            assert (answer.lends, answer.line) == ((1, 77) if cycle == 4 else (0, 0))

    simulate(dut, run)
