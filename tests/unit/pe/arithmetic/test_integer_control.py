"""Controls come in the cycles of their steps, and a function takes one way to its result."""

from amaranth.hdl import Module, Signal

from tilewright.hw.pe.arithmetic.integer_control import integer_controls
from tilewright.spec.arithmetic import FUNCTIONS, Function
from tilewright.verify.pysim.simulate import simulate

KINDS = [
    (function, part)
    for function, info in FUNCTIONS.items()
    if info.unit in ("alu", "lookup")
    for part in range(info.parts)
]
#: What decides where the result comes from, and what its value 0 stands for: a sum.
CHOICES = {2: ("mode",), 3: ("looks",), 6: ("result",)}
SUMS = {Function[name] for name in ["MOV", "ADD", "SUB", "ADD4", "SUB4", "SHFL", "XB", "XBU", "XH", "XHU"]}


def test_one_function_at_a_time():
    """All controls are those of the function that came so many cycles before; none is left behind."""
    m, function, part = Module(), Signal(8), Signal(3)
    at = integer_controls(m, function, part, threads=4)
    controls = [(cycle, name, value) for cycle, values in at.items() for name, value in vars(values).items()]
    nothing = 255  # no function
    seen = {}

    async def testbench(ctx):
        for kind in KINDS:
            ctx.set(function, kind[0])
            ctx.set(part, kind[1])
            await ctx.tick()
            ctx.set(function, nothing)
            ctx.set(part, 0)
            for cycle in range(9):
                for when, name, value in controls:
                    found = ctx.get(value)
                    assert not found or when == cycle, f"{Function(kind[0]).name}: {name} of cycle {when} in {cycle}"
                    if found:
                        seen.setdefault(kind, {})[when, name] = found
                await ctx.tick()

    simulate(m, testbench, deadline=10_000)
    for kind in KINDS:
        found = seen.get(kind, {})
        ways = [name for cycle, names in CHOICES.items() for name in names if found.get((cycle, name))]
        info = FUNCTIONS[kind[0]]
        assert len(ways) == (0 if kind[0] in SUMS or info.predicate else 1), Function(kind[0]).name
