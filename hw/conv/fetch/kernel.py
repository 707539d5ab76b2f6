"""Rows of the kernel in lane-private mode (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.params import KERNEL_ROWS

from ...lib.delay import delay
from ..layouts import PlanLayout

__all__ = ["KernelRows", "KernelWriteLayout"]


class KernelWriteLayout(data.StructLayout):
    """A write of a row of the kernel."""

    def __init__(self, params):
        row = data.ArrayLayout(128, params.row_slots)
        super().__init__({"row": range(KERNEL_ROWS), "data": row, "enable": unsigned(1)})


class KernelRows(wiring.Component):
    """Holds rows of the kernel, each of one block at one position, repeated all over the row.

    In pooling every row is the fill. Latency 2; a write and a read for each half of the units a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
    write : In(KernelWriteLayout(params))
        What is written can be read from the same cycle on.
    read : In(array of params.halves range(KERNEL_ROWS))
    rows : Out(array of params.halves 8 * params.conv.row_bytes)
        What was read two cycles ago.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "write": In(KernelWriteLayout(params)),
                "read": In(data.ArrayLayout(range(KERNEL_ROWS), params.halves)),
                "rows": Out(data.ArrayLayout(8 * params.conv.row_bytes, params.halves)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self.params.conv.row_bytes
        m.submodules.memory = memory = Memory(shape=bits, depth=KERNEL_ROWS, init=[])
        write = memory.write_port()
        pool = Signal()
        m.d.sync += pool.eq(self.plan.pool)
        m.d.comb += [
            write.addr.eq(self.write.row),
            write.data.eq(self.write.data),
            write.en.eq(self.write.enable),
        ]
        for number, (address, row) in enumerate(zip(self.read, self.rows, strict=True)):
            read = memory.read_port()
            m.d.comb += [
                read.addr.eq(delay(m, address, 1, name=f"read{number}")),
                row.eq(Mux(pool, self.plan.k_fill.replicate(bits // 16), read.data)),
            ]
        return m
