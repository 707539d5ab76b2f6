"""Register file: random traffic on all ports against an array; latency, priorities, and gaps for writes that starve."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.layouts import LANE_READ_LATENCY, PREDICATES
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.hw.pe.registers import PATIENCE, PredicateFile, RegisterFile
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

SEED = 3
UNIT = PE_PRESETS["unit"]


def unpacked(row):
    return [row[index] for index in range(len(row))]


async def fill(ctx, dut, params):
    """Writes a different number to every register of every thread, by results; returns them all."""
    table = [[(register << 16) + thread for thread in range(params.threads)] for register in range(params.regs)]
    ctx.set(dut.compute.results_valid, 1)
    ctx.set(dut.compute.results_threads, (1 << params.threads) - 1)
    for register, row in enumerate(table):
        ctx.set(dut.compute.results_register, register)
        ctx.set(dut.compute.results_data, row)
        await ctx.tick()
    ctx.set(dut.compute.results_valid, 0)
    return table


def lane_row(params, table, read):
    """What a lane read answers."""
    row = table[read["register"]] + [0] * LANES
    return row[LANES * read["group"] :][:LANES] if params.groups > 1 else row[:LANES]


@pytest.mark.parametrize("threads", [4, 12, 16])
def test_random_traffic(threads):
    """Every port does something at random in each cycle; the array changes at its end."""
    params = UNIT.replace(threads=threads)
    dut = elaborated(RegisterFile, params)
    rng = random.Random(SEED)

    def lane_read():
        return {"register": rng.randrange(params.regs), "group": rng.randrange(params.groups)}

    def lane_write():
        group = rng.randrange(params.groups)
        there = (1 << min(LANES, threads - LANES * group)) - 1
        return {
            "register": rng.randrange(params.regs),
            "group": group,
            "lanes": rng.getrandbits(LANES) & there,
            "data": [rng.getrandbits(32) for _ in range(LANES)],
        }

    async def testbench(ctx):
        table = await fill(ctx, dut, params)
        offered = {}  # streams that wait
        due = {}  # cycle -> expected answer to a lane read
        row_due = {}
        ports = {"lane_reads": dut.lane_reads.requests, "issue_reads": dut.issue_reads.requests}
        ports |= {"loads": dut.loads, "moves": dut.moves}
        streams = {"lane_reads": lane_read, "issue_reads": lane_read, "loads": lane_write, "moves": lane_write}
        accepted = dict.fromkeys(streams, 0)
        for cycle in range(900):
            inputs = []
            for name, make in streams.items():
                if name not in offered and rng.random() < 0.6:
                    offered[name] = make()
                    inputs.append((ports[name].payload, offered[name]))
                inputs.append((ports[name].valid, name in offered))
            accumulator, factor = rng.randrange(params.regs), rng.randrange(params.regs)
            reads_accumulator, reads_factor, results = (rng.random() < 0.7 for _ in range(3))
            compute, factor_reads = dut.compute, dut.compute.factor_reads
            inputs += [(compute.accumulator_enable, reads_accumulator), (compute.accumulator_register, accumulator)]
            inputs += [(factor_reads.valid, reads_factor), (factor_reads.payload, factor)]
            result = {
                "register": rng.randrange(params.regs),
                "threads": rng.getrandbits(threads),
                "data": [rng.getrandbits(32) for _ in range(threads)],
            }
            inputs += [(getattr(compute, f"results_{name}"), value) for name, value in result.items()]
            set_together(ctx, *inputs, (compute.results_valid, results))
            ready = {name: ctx.get(port.ready) for name, port in ports.items()}

            # Answers of this cycle were asked for before.
            for name, expected in row_due.items():
                row = ctx.get(compute.factor_row if name == "factor_row" else compute.accumulator_rows[name])
                assert unpacked(row) == expected
            if cycle in due:
                answer = due.pop(cycle)
                assert unpacked(ctx.get(dut.lane_reads.data)) == unpacked(ctx.get(dut.issue_reads.data)) == answer

            row_due, lane_register, written = {}, None, set()
            if reads_accumulator:
                row_due[accumulator % 2] = table[accumulator][:]
            if reads_factor:
                row_due["factor_row"] = table[factor][:]
            for name in ("lane_reads", "issue_reads"):
                if name in offered and ready[name]:
                    read = offered.pop(name)
                    accepted[name] += 1
                    assert cycle + LANE_READ_LATENCY not in due, "one a cycle"
                    assert not reads_factor or (factor ^ read["register"]) & 1, "factors take their bank"
                    due[cycle + LANE_READ_LATENCY] = lane_row(params, table, read)
                    lane_register = read["register"]
            for name in ("loads", "moves"):
                if name in offered and ready[name]:
                    write = offered.pop(name)
                    accepted[name] += 1
                    assert not results or (result["register"] ^ write["register"]) & 1, "results take their bank"
                    written.add(write["register"])
                    for lane in range(LANES):
                        if write["lanes"] >> lane & 1:
                            table[write["register"]][LANES * write["group"] + lane] = write["data"][lane]
            if results:
                written.add(result["register"])
                for thread in range(threads):
                    if result["threads"] >> thread & 1:
                        table[result["register"]][thread] = result["data"][thread]
            # A register that is written while it is read reads as anything.
            for name, register in ((accumulator % 2, accumulator), ("factor_row", factor)):
                if register in written:
                    row_due.pop(name, None)
            if lane_register in written:
                del due[cycle + LANE_READ_LATENCY]
            await ctx.tick()
        assert min(accepted.values()) > 100, accepted

    simulate(dut, testbench)


def test_writes_of_lanes_are_one_a_cycle_beside_results_of_the_other_bank():
    write = {"register": 3, "group": 0, "lanes": 15, "data": [7] * LANES}
    inputs = {"compute.results_valid": 1, "compute.results_register": 2}
    _, cycles = transact(elaborated(RegisterFile, UNIT), {"loads": [write] * 20}, inputs=inputs)
    assert cycles["loads"] == [*range(20)]


def test_loads_go_before_moves():
    writes = [{"register": 3, "group": 0, "lanes": 15, "data": [7] * LANES}] * 10
    _, cycles = transact(elaborated(RegisterFile, UNIT), {"loads": writes, "moves": writes})
    assert cycles == {"loads": [*range(10)], "moves": [*range(10, 20)]}


@pytest.mark.parametrize("name", ["loads", "moves"])
def test_a_write_that_starves_is_let_in(name):
    """Results that go to one bank for ever leave a gap when ``starved`` is high."""
    dut = elaborated(RegisterFile, UNIT)
    write = {"register": 4, "group": 0, "lanes": 15, "data": [7] * LANES}

    async def results(ctx):
        ctx.set(dut.compute.results_register, 2)
        ctx.set(dut.compute.results_valid, 1)
        asked = [0, 0, 0]
        async for *_, starved in ctx.tick().sample(dut.compute.starved):
            ctx.set(dut.compute.results_valid, not asked[1])
            asked = [starved, *asked[:2]]

    _, cycles = transact(dut, {name: [write] * 3}, background=[results])
    gap = PATIENCE + 4  # asked for a cycle after PATIENCE cycles, granted three later
    assert cycles[name] == [gap - 1, 2 * gap - 1, 3 * gap - 1]


PREDICATES_SEED = 20261121


@pytest.mark.parametrize("threads", [4, 24])
def test_writes_and_reads(threads):
    params = PE_PRESETS["unit"].replace(threads=threads)
    dut = elaborated(PredicateFile, params)
    rng = random.Random(PREDICATES_SEED)
    rows = [[0] * params.groups for _ in range(LANES)]  # by lane, by group

    async def run(ctx):
        shown = [0] * LANES  # at the sequencer's port
        for cycle in range(400):
            write = {
                "predicate": rng.randrange(PREDICATES),
                "group": rng.randrange(params.groups),
                "lanes": rng.getrandbits(LANES),
                "values": rng.getrandbits(LANES),
            }
            valid, enable = rng.randrange(2), rng.randrange(2)
            predicate, issue_predicate = rng.randrange(PREDICATES), rng.randrange(PREDICATES)
            groups, issue_group = [rng.randrange(params.groups) for _ in range(LANES)], rng.randrange(params.groups)
            ctx.set(dut.writes.payload, write)
            ctx.set(dut.writes.valid, valid)
            ctx.set(dut.reads.enable, enable)
            ctx.set(dut.reads.predicate, predicate)
            ctx.set(dut.issue_reads.group, issue_group)
            ctx.set(dut.issue_reads.predicate, issue_predicate)
            for lane in range(LANES):
                ctx.set(dut.reads.groups[lane], groups[lane])
            assert ctx.get(dut.writes.ready)
            await ctx.tick()
            if enable:
                shown = [rows[lane][groups[lane]] >> predicate & 1 for lane in range(LANES)]
            if enable or cycle:
                assert [ctx.get(value) for value in dut.reads.values] == shown
            wanted = [row[issue_group] >> issue_predicate & 1 for row in rows]
            assert [ctx.get(value) for value in dut.issue_reads.values] == wanted
            for lane in range(LANES):
                if valid and write["lanes"] >> lane & 1:
                    bit = 1 << write["predicate"]
                    others = rows[lane][write["group"]] & ~bit
                    rows[lane][write["group"]] = others | (bit if write["values"] >> lane & 1 else 0)

    print(f"seed {PREDICATES_SEED}")
    simulate(dut, run)
