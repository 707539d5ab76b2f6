"""Pipelines that never stall, in Amaranth's Python simulator."""

from amaranth.hdl import Value

from .ports import set_together
from .simulate import simulate
from .unpacked import unpacker

__all__ = ["run_pipeline"]


def run_pipeline(dut, rows, behind=None, **latencies):
    """Feeds a pipeline one row a cycle, without a pause.

    Parameters
    ----------
    dut : Component
    rows : sequence of dict
        Values of the members that are inputs, by name; those left out keep their values.
    behind : dict, optional
        Inputs by name that come so many cycles later than their rows.
    **latencies
        Outputs by name, with the cycles after which they belong to a row; ``o=dut.LATENCY`` if there is none.

    Returns
    -------
    list of dict
        Values of the outputs, a dictionary for each row.
    """
    latencies, behind = latencies or {"o": dut.LATENCY}, behind or {}
    results = [{} for _ in rows]
    outputs = [(name, late, getattr(dut, name)) for name, late in latencies.items()]
    outputs = [(name, late, Value.cast(port), unpacker(port.shape())) for name, late, port in outputs]

    async def testbench(ctx):
        for cycle in range(len(rows) + max(latencies.values())):
            come = [
                (getattr(dut, name), rows[cycle - late][name])
                for late in {0, *behind.values()}
                if 0 <= cycle - late < len(rows)
                for name in rows[cycle - late]
                if behind.get(name, 0) == late
            ]
            set_together(ctx, *come)
            for name, latency, bits, unpack in outputs:
                if 0 <= cycle - latency < len(rows):
                    results[cycle - latency][name] = unpack(ctx.get(bits))
            await ctx.tick()

    simulate(dut, testbench, deadline=len(rows) + 100)
    return results
