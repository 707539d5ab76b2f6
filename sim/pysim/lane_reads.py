"""A register file for blocks that read registers of groups of threads."""

from amaranth.hdl import Value

from tilewright.hw.pe.layouts import LANE_READ_LATENCY
from tilewright.hw.pe.params import LANES

from .ports import set_together
from .unpacked import unpacker

__all__ = ["lane_registers"]


def lane_registers(port, words, rng, *, busy=0.0):
    """A background testbench that answers exactly when it must; in all other cycles the data are random.

    Parameters
    ----------
    port : interface of LaneReadSignature
    words : function of register, group
        Returns the words of all lanes.
    rng : random.Random
    busy : float
        Probability that no read is accepted in a cycle.
    """

    async def answer(ctx):
        requests, reads = port.requests, [None] * LANE_READ_LATENCY
        ctx.set(requests.ready, 1)
        signals = (requests.valid, requests.ready, Value.cast(requests.payload))
        unpack = unpacker(requests.payload.shape())
        async for _, _, valid, ready, bits in ctx.tick().sample(*signals):
            read = unpack(bits)
            reads = [*reads[1:], (read.register, read.group) if valid and ready else None]
            row = words(*reads[0]) if reads[0] else [rng.getrandbits(32) for _ in range(LANES)]
            set_together(ctx, (port.data, row), (requests.ready, rng.random() >= busy))

    return answer
