"""A command processor between models of its neighbours."""

import random

from amaranth.hdl import Value

from support.streams import responder
from tilewright.golden import ProgramRecord
from tilewright.spec import BarrierOp
from tilewright.spec.core import PROGRAM_REGISTERS, Engine, ProgramError
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, watch_stream

__all__ = ["START", "STOP", "ProgramBench"]

OFFSETS = {register.name: register for register in PROGRAM_REGISTERS}
_CONTROL = OFFSETS["control"].format
#: Words for the register ``control``.
START, STOP = _CONTROL.pack(start=1, clear_error=1, clear_counters=1), _CONTROL.pack(stop=1)


class ProgramBench:
    """Models of memory, barriers, registers and engines, each of which pauses as ``mode`` says.

    Parameters
    ----------
    dut : CommandProcessor
        With a convolution engine.
    memory : uint8 array
        Global memory.
    mode : str
        Of ``STALL_MODES``.
    seed : int
        Of the pauses.

    Attributes
    ----------
    events : list of tuple
        What engines, barriers and registers received, in order: ``("command", word)``, ``("instruction", word)``,
        ``("job", word)``, ``("barrier", op, address, value)`` except waits, ``("register", address, word)``.
    asked : list of int
        Operations on barriers, waits too.
    never : set of int
        Barriers whose phases do not complete.
    bus : AxiMemory
    """

    def __init__(self, dut, memory, mode="none", seed=1):
        self.dut = dut
        self.memory, self.mode, self.rng = memory, mode, random.Random(seed)
        self.bus = AxiMemory(self.dut.axi, memory, stall=STALL_MODES[mode]["stall"] / 2, seed=seed)
        self.events, self.asked = [], []
        self.never = set()

    def _pauses(self):
        return self.rng.random() < STALL_MODES[self.mode]["stall"]

    def taker(self, port, name):
        """A testbench that accepts the words of an engine."""

        async def take(ctx):
            ready = 0
            async for _, _, valid, bits in ctx.tick().sample(port.valid, Value.cast(port.payload)):
                if valid and ready:
                    self.events.append((name, bits))
                ready = not self._pauses()
                ctx.set(port.ready, ready)

        return take

    def barrier(self, request):
        """The answer to an operation on a barrier."""
        self.asked.append(request.op)
        if request.op != BarrierOp.TRY_WAIT:
            self.events.append(("barrier", request.op, request.address, request.value))
        return {"done": request.op == BarrierOp.TRY_WAIT and request.address not in self.never, "error": 0}

    def register(self, access):
        """The answer to the write of a register."""
        assert access.write and access.strobe == 15
        self.events.append(("register", access.address, access.data))
        return {"data": 0, "error": 0}

    async def access(self, ctx, name, word=None):
        """Reads a register of the processor, or writes it."""
        requests, answers = self.dut.accesses.requests, self.dut.accesses.answers
        write = {} if word is None else {"write": 1, "data": word, "strobe": 15}
        ctx.set(requests.payload, {"address": OFFSETS[name].offset} | write)
        ctx.set(requests.valid, 1)
        ctx.set(answers.ready, 1)
        await ctx.tick().until(requests.ready)
        ctx.set(requests.valid, 0)
        (payload,) = await ctx.tick().sample(answers.payload).until(answers.valid)
        assert not payload.error
        return payload.data

    async def start(self, ctx, address, words, watchdog=0, window=None):
        """Starts a program."""
        ctx.set(self.dut.idle, 7)
        base, limit = window or (0, 0)
        values = {"windows": window is not None, "program_words": words}
        for name, value in (("window_base", base), ("window_limit", limit), ("program", address)):
            values |= {f"{name}_lo": value & 0xFFFFFFFF, f"{name}_hi": value >> 32}
        for name, value in (
            values | {"watchdog": watchdog, "irq_enable": 3, "irq_status": 3, "control": START}
        ).items():
            await self.access(ctx, name, int(value))

    async def end(self, ctx):
        """Waits for the end; returns the error record, or None."""
        while ctx.get(self.dut.running) or not await self.access(ctx, "status") & 1:
            await ctx.tick()
        error, index = await self.access(ctx, "error"), await self.access(ctx, "error_word")
        fields = OFFSETS["error"].format.unpack(error)
        if not fields["code"]:
            return None
        return ProgramRecord(ProgramError(fields["code"]), Engine(fields["engine"]), fields["tag"], index)

    def simulate(self, *benches, deadline=60_000):
        """Runs testbenches beside the models."""
        dut = self.dut
        takers = [self.taker(getattr(dut, f"{name}s"), name) for name in ("command", "instruction", "job")]
        rules = [watch_stream(port) for port in (dut.commands, dut.instructions, dut.jobs, dut.barriers)]
        writes = dut.register_writes
        answerers = [
            responder(dut.barriers, dut.barrier_results, self.barrier),
            responder(writes.requests, writes.answers, self.register),
        ]
        background = [*takers, *rules, *answerers, self.bus.serve]
        simulate(dut, *benches, background=background, deadline=deadline)
