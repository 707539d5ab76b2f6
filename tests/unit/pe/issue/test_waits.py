"""bar.wait asks until the phase is complete; fence and halt wait until all is quiet (stopped cores: see the proof)."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.issue.waits import Waits
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec import BarrierOp
from tilewright.spec.pe import Operation
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES, receive, send


@pytest.mark.parametrize("mode", STALL_MODES)
def test_waits(mode):
    dut = elaborated(Waits, PE_PRESETS["unit"])
    rng = random.Random(f"waits {mode}")
    stall = STALL_MODES[mode]["stall"]
    operations = [rng.choice([Operation.BAR_WAIT, Operation.FENCE, Operation.HALT]) for _ in range(60)]
    waits = [
        {"operation": operation, "address": 8 * rng.randrange(64), "parity": rng.randrange(2)}
        for operation in operations
    ]
    refusals = [rng.randrange(4) for _ in waits]  # answers before the phase is complete
    quiet, halts = [], []

    async def barrier(ctx):
        for number, (wait, refused) in enumerate(zip(waits, refusals, strict=True)):
            if wait["operation"] != Operation.BAR_WAIT:
                continue
            for attempt in range(refused + 1):
                (request,), _ = await receive(ctx, dut.barriers, 1, stall=stall, seed=10 * number + attempt)
                assert request.op == BarrierOp.TRY_WAIT
                assert (request.address, request.value) == (wait["address"], wait["parity"])
                for _ in range(rng.randrange(3)):
                    await ctx.tick()
                await send(ctx, dut.barrier_results, [{"done": attempt == refused}])

    async def neighbours(ctx):
        while True:
            ctx.set(dut.quiet, rng.random() < 0.3)
            _, _, was_quiet, halted, over_now = await ctx.tick().sample(
                dut.quiet, dut.halted, dut.i.valid & dut.i.ready
            )
            quiet.append(was_quiet)
            assert over_now or not halted
            halts.append(halted)

    _, cycles = transact(dut, {"i": waits}, mode=mode, seed=3, watch=["barriers"], testbenches=[barrier],
                         background=[neighbours])  # fmt: skip
    for operation, cycle in zip(operations, cycles["i"], strict=True):
        assert operation == Operation.BAR_WAIT or quiet[cycle]
        assert halts[cycle] == (operation == Operation.HALT)
    assert sum(halts) == operations.count(Operation.HALT)
