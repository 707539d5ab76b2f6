"""mov and setp against a few lines of Python; the test has the register file and the predicates."""

import random

from support.pe_operands import lane_registers
from support.selection import grid
from support.streams import transact
from tilewright.hw.pe.issue.lane_ops import LaneOps
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import Compare
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, watch_stream

PRESETS = {
    "unit": PE_PRESETS["unit"],
    "ragged": PE_PRESETS["unit"].replace(threads=19),
    "default": PE_PRESETS["default"],
}
#: Cores of the cluster, and the number of the one that is looked at; one alone has none.
CORES = {"unit": (16, 11), "ragged": (1, 0), "default": (3, 2)}
EXTREMES = (0, 1, 2, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_0000, 0xFFFF_FFFF)


def signed(value):
    return value - (value >> 31 << 32)


def compares(compare, first, second):
    """Whether 32-bit ``first`` compares as asked with ``second``."""
    if compare < Compare.LTU:
        first, second = signed(first), signed(second)
    less, same = first < second, first == second
    return {"EQ": same, "NE": not same, "LT": less, "LE": less or same, "GT": not (less or same), "GE": not less}[
        Compare(compare).name.removesuffix("U")
    ]


class Neighbours:
    """Registers and predicates as the other blocks hold them."""

    def __init__(self, dut, params, rng):
        self.dut, self.params = dut, params
        self.registers = [[rng.choice(EXTREMES) for _ in range(params.regs)] for _ in range(LANES * params.groups)]
        self.predicates = [rng.getrandbits(8) for _ in range(LANES * params.groups)]

    def threads(self, group):
        return range(LANES * group, LANES * group + LANES)

    def words(self, register, group):
        return [self.registers[thread][register] for thread in self.threads(group)]

    async def answer(self, ctx):
        port = self.dut.predicates
        async for _, _, group, predicate in ctx.tick().sample(port.group, port.predicate):
            threads = self.threads(group % self.params.groups)
            values = [self.predicates[thread] >> predicate & 1 for thread in threads]
            ctx.set(port.values, sum(value << lane for lane, value in enumerate(values)))

    def write(self, writes, store):
        """Does what ``writes`` say, by ``store(thread, item, lane)``, and checks that each thread exists."""
        for item in writes:
            for lane, thread in enumerate(self.threads(item.group)):
                if item.lanes >> lane & 1:
                    assert thread < self.params.threads
                    store(thread, item, lane)


def random_operation(rng, params):
    return {
        "setp": rng.randrange(2),
        "source": rng.randrange(2),
        "core": rng.randrange(2),
        "register": rng.randrange(params.regs),
        "imm": rng.choice((*EXTREMES, rng.randrange(params.threads))),
        "compare": rng.choice(list(Compare)),
        "target": rng.randrange(8),
        "guard": rng.randrange(2),
        "predicate": rng.randrange(8),
    }


@grid(lambda preset, mode: preset == "unit" or mode == "both", preset=PRESETS, mode=STALL_MODES)
def test_operations(preset, mode):
    params = PRESETS[preset]
    cores, core = CORES[preset]
    dut = elaborated(LaneOps, params, cores)
    rng = random.Random(f"lane ops {preset}")
    neighbours = Neighbours(dut, params, rng)
    operations = [random_operation(rng, params) for _ in range(60)]
    stall, idle = STALL_MODES[mode]["stall"], STALL_MODES[mode]["idle"]

    def move(thread, item, lane):
        neighbours.registers[thread][item.register] = item.data[lane]

    def decide(thread, item, lane):
        bit = 1 << item.predicate
        neighbours.predicates[thread] = neighbours.predicates[thread] & ~bit | (bit if item.values >> lane & 1 else 0)

    async def testbench(ctx):
        if cores > 1:
            ctx.set(dut.core_number, core)
        for number, operation in enumerate(operations):
            registers = [list(row) for row in neighbours.registers]
            predicates = list(neighbours.predicates)
            for thread in range(params.threads):
                if operation["guard"] and not predicates[thread] >> operation["predicate"] & 1:
                    continue
                if operation["setp"]:
                    first = thread if operation["source"] else registers[thread][operation["register"]]
                    bit = 1 << operation["target"]
                    holds = compares(operation["compare"], first, operation["imm"])
                    predicates[thread] = predicates[thread] & ~bit | (bit if holds else 0)
                else:
                    given = operation["imm"] | (core if operation["core"] else 0)
                    registers[thread][operation["register"]] = thread if operation["source"] else given
            ctx.set(dut.i.payload, operation)
            ctx.set(dut.i.valid, 1)
            writes, store = (dut.predicate_writes, decide) if operation["setp"] else (dut.moves, move)
            cycles = 0
            for group in range(params.groups):
                items, accepted_in = await receive(ctx, writes, 1, stall=stall, seed=100 * number + group)
                cycles += accepted_in[0] + 1
                neighbours.write(items, store)
            ctx.set(dut.i.valid, 0)
            if mode == "none":
                assert cycles == 1 + params.groups * (13 if operation["setp"] else 1)
            assert (neighbours.registers, neighbours.predicates) == (registers, predicates), operation
            while rng.random() < idle:
                await ctx.tick()

    streams = (dut.reads.requests, dut.moves, dut.predicate_writes)
    registers = lane_registers(dut.reads, neighbours.words, rng, busy=stall)
    simulate(dut, testbench, background=[neighbours.answer, registers, *map(watch_stream, streams)], deadline=50_000)


def test_accepted_with_the_last_write():
    params = PRESETS["default"]
    operations = [{"imm": 1, "register": 3}, {"imm": 2, "register": 4}]
    payloads, cycles = transact(elaborated(LaneOps, params), {"i": operations}, {"moves": 2 * params.groups})
    assert [move.register for move in payloads["moves"]] == [3] * params.groups + [4] * params.groups
    assert cycles["i"] == [cycles["moves"][params.groups - 1], cycles["moves"][-1]]
