"""Pipelines that never stall, in Amaranth's Python simulator."""

from amaranth.hdl import Value

from .simulate import simulate
from .streams import packed

__all__ = ["run_pipeline"]


def run_pipeline(dut, rows, **latencies):
    """Feeds a pipeline one row a cycle, without a pause.

    Parameters
    ----------
    dut : Component
    rows : sequence of dict
        Values of the members that are inputs, by name; those left out keep their values.
    **latencies
        Outputs by name, with the cycles after which they belong to a row; ``o=dut.LATENCY`` if there is none.

    Returns
    -------
    list of dict
        Values of the outputs, a dictionary for each row.
    """
    latencies = latencies or {"o": dut.LATENCY}
    results = [{} for _ in rows]

    async def testbench(ctx):
        for cycle in range(len(rows) + max(latencies.values())):
            for name, value in rows[cycle].items() if cycle < len(rows) else ():
                port = getattr(dut, name)
                ctx.set(Value.cast(port), packed(port.shape(), value))
            for name, latency in latencies.items():
                if 0 <= cycle - latency < len(rows):
                    results[cycle - latency][name] = ctx.get(getattr(dut, name))
            await ctx.tick()

    simulate(dut, testbench, deadline=len(rows) + 100)
    return results
