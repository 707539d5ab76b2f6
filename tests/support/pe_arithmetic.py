"""The arithmetic with registers and predicates, without the rest of the engine, and neighbours that disturb it."""

import random

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.hw.pe.arithmetic.path import ArithmeticPath, path_latency
from tilewright.hw.pe.arithmetic.router import Router
from tilewright.hw.pe.arithmetic.start import ArithmeticStart
from tilewright.hw.pe.compute import mac_array, multiply_latency
from tilewright.hw.pe.registers import PredicateRows, RegisterFile
from tilewright.spec.arithmetic import FUNCTIONS, Operand
from tilewright.spec.pe import Operation
from tilewright.verify.pysim.streams import set_together

__all__ = ["FREE", "Arithmetic", "disturb", "random_operation"]

#: Registers below this number belong to operations, those from it on to neighbours.
FREE = 24


class Arithmetic(Elaboratable):
    """Router, ArithmeticStart, ArithmeticPath and what they use; nothing else is in flight."""

    def __init__(self, params):
        self.latency = path_latency(params, multiply_latency(mac_array(params)))
        self.router, self.registers, self.predicates = Router(params), RegisterFile(params), PredicateRows(params)
        self.start, self.path = ArithmeticStart(params, self.latency), ArithmeticPath(params, self.latency)

    def elaborate(self, platform):
        m = Module()
        blocks = {name: getattr(self, name) for name in ("router", "registers", "predicates", "start", "path")}
        m.submodules += blocks.values()
        start, path, registers, predicates = self.start, self.path, self.registers, self.predicates
        connect(m, self.router.operations, start.i)
        connect(m, start.registers, registers.arithmetic)
        m.d.comb += [
            self.router.rests.eq(1),
            start.access.clear.eq(1),
            path.operands.eq(start.operands),
            *(path.left[bank].eq(registers.arithmetic.left_rows[bank]) for bank in range(2)),
            *(path.right[bank].eq(registers.arithmetic.right_rows[bank]) for bank in range(2)),
            *(
                getattr(start, name).eq(getattr(path, name))
                for name in ("divided", "division_threads", "threads", "holds")
            ),
            start.results.eq(path.results),
            *(target.eq(number) for target, number in zip(predicates.numbers, start.predicate_numbers, strict=True)),
            *(target.eq(row) for target, row in zip(start.predicate_rows, predicates.rows, strict=True)),
            predicates.write.eq(start.predicate_write),
            predicates.target.eq(start.predicate_target),
            predicates.values.eq(start.predicate_values),
            predicates.threads.eq(start.predicate_threads),
        ]
        return m


def disturb(top, params, seed):
    """A testbench of a neighbour: reads and writes of multiplies and loads, in registers from ``FREE`` on."""
    rng, latency = random.Random(seed), top.latency
    compute, loads, lanes = top.registers.compute, top.registers.loads, top.registers.lane_reads.requests
    row = [rng.getrandbits(32) for _ in range(params.threads)]

    async def testbench(ctx):
        writes = [None] * latency  # registers that multiplies write, in the next cycles
        while True:
            writes.append(rng.randrange(FREE, params.regs) if rng.random() < 0.4 else None)
            now, ahead = writes.pop(0), writes[-1]
            accumulators, factors = rng.random() < 0.4, rng.random() < 0.3
            set_together(
                ctx,
                (top.start.writes_ahead, 0 if ahead is None else 1 << ahead % 2),
                (compute.results_valid, now is not None), (compute.results_register, now or 0),
                (compute.results_threads, (1 << params.threads) - 1), (compute.results_data, row),
                (compute.accumulator_enable, accumulators),
                (compute.accumulator_register, rng.randrange(params.regs)),
                (compute.factor_reads.valid, factors), (compute.factor_reads.payload, rng.randrange(params.regs)),
            )  # fmt: skip
            if not ctx.get(loads.valid):
                where = {"register": rng.randrange(FREE, params.regs), "group": 0, "lanes": 1, "data": [7] * 8}
                set_together(ctx, (loads.valid, rng.random() < 0.3), (loads.payload, where))
            if not ctx.get(lanes.valid):
                where = {"register": rng.randrange(params.regs), "group": 0}
                set_together(ctx, (lanes.valid, rng.random() < 0.3), (lanes.payload, where))
            taken = [(port, ctx.get(port.valid) and ctx.get(port.ready)) for port in (loads, lanes)]
            await ctx.tick()
            for port, done in taken:
                if done:
                    ctx.set(port.valid, 0)

    return testbench


def random_operation(rng, functions, registers=FREE):
    """A packed ARITH of one of ``functions``; registers below a number, so that operations depend on each other."""
    function = rng.choice(functions)
    info, fields = FUNCTIONS[function], {"function": function, "part": rng.randrange(FUNCTIONS[function].parts)}
    fields |= {f"r{name}": rng.randrange(registers) for name in "ac" if name in info.operands}
    if "b" in info.operands:
        fields["b"] = rng.choice((Operand.REGISTER, Operand.IMMEDIATE))
        fields |= {"imm": rng.getrandbits(32)} if fields["b"] else {"rb": rng.randrange(registers)}
    fields |= {"ps": rng.randrange(8)} if info.selects else {}
    fields |= {"guard": 1, "predicate": rng.randrange(8)} if rng.random() < 0.3 else {}
    return word(Operation.ARITH, **fields, rd=rng.randrange(8 if info.predicate else registers))
