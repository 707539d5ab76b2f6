"""Lines go to all receivers at once; a transfer ends when all of them have acknowledged it."""

from tilewright.hw.cluster.network.outbox import Outbox
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send, watch_stream

CORES, OWN = 3, 1
SMEM = SmemParams(1024)


def outbox():
    return Outbox(SMEM, CORES, OWN)


def deliver(masks, free=lambda core, cycle: True):
    """Sends a line for each mask; of each core the rows that it took with the cycles, and the cycles of acceptance."""
    dut, taken, result = elaborated(outbox), [[] for _ in range(CORES)], {}

    async def source(ctx):
        lines = [{"row": row, "receivers": mask} for row, mask in enumerate(masks)]
        result["accepted"] = await send(ctx, dut.writes, lines)
        await ctx.tick().repeat(12)

    async def sinks(ctx):
        cycle = 0
        while True:
            for core, port in enumerate(dut.packets):
                ctx.set(port.ready, free(core, cycle))
            values = [value for port in dut.packets for value in (port.valid & port.ready, port.p.change.row)]
            _, _, *seen = await anext(aiter(ctx.tick().sample(*values)))
            for core in range(CORES):
                if seen[2 * core]:
                    taken[core].append((seen[2 * core + 1], cycle))
            cycle += 1

    simulate(dut, source, background=[sinks, *(watch_stream(port) for port in dut.packets)])
    return taken, result["accepted"]


def test_all_receivers_take_the_cycles_of_one():
    (first, second, third), accepted = deliver([0b111] * 6)
    assert accepted == list(range(6))
    assert first == second == third == [(row, row + 1) for row in range(6)]


def test_a_mask_of_zero_is_the_sender():
    taken, _ = deliver([0, 0b100])
    assert [[row for row, _ in rows] for rows in taken] == [[], [0], [1]]


def test_a_receiver_that_stalls_holds_up_what_comes_behind_its_line():
    """Core 0 takes nothing before cycle 8; core 2 has its line of the same packet long before."""
    taken, _ = deliver([0b100, 0b101, 0b100], lambda core, cycle: core != 0 or cycle >= 8)
    assert taken == [[(1, 8)], [], [(0, 1), (1, 2), (2, 9)]]


def test_an_end_waits_for_every_acknowledgement():
    dut, seen = elaborated(outbox), {}

    async def source(ctx):
        await send(ctx, dut.landed, [{"receivers": 0b101, "tag": 7, "turn": 2}])

    async def receivers(ctx):
        for port in dut.packets:
            ctx.set(port.ready, 1)
        packet = dut.packets[2].p
        seen["end"] = await ctx.tick().sample(packet.ends, packet.end.tag, packet.turn).until(dut.packets[0].valid)
        for core, refused in ((2, 1), (0, 0)):
            await ctx.tick().repeat(3)
            assert not ctx.get(dut.landed.ready)
            ctx.set(dut.acks[core], {"valid": 1, "refused": refused})
            await ctx.tick()
            ctx.set(dut.acks[core], {"valid": 0})
        seen["refusing"] = ctx.get(dut.landed.ready), ctx.get(dut.refusing)

    simulate(dut, source, receivers)
    assert seen == {"end": (1, 7, 2), "refusing": (1, 0b100)}
