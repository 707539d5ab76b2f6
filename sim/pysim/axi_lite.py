"""Reads and writes over AXI4-Lite, one at a time."""

from tilewright.hw.bus.axi4 import Response

__all__ = ["read_word", "write_word"]


async def read_word(ctx, axi, address):
    """The word at a byte address, and the response."""
    ctx.set(axi.araddr, address)
    ctx.set(axi.arvalid, 1)
    ctx.set(axi.rready, 1)
    await ctx.tick().until(axi.arready)
    ctx.set(axi.arvalid, 0)
    return await ctx.tick().sample(axi.rdata, axi.rresp).until(axi.rvalid)


async def write_word(ctx, axi, address, word):
    """Writes all four bytes, which must be answered with OKAY."""
    ctx.set(axi.awaddr, address)
    ctx.set(axi.wdata, word)
    ctx.set(axi.wstrb, 15)
    for valid in (axi.awvalid, axi.wvalid, axi.bready):
        ctx.set(valid, 1)
    await ctx.tick().until(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)
    (response,) = await ctx.tick().sample(axi.bresp).until(axi.bvalid)
    assert response == Response.OKAY
