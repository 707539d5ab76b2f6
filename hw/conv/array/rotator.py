"""Turns rows of all slaves (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RowRotator"]


class RowRotator(wiring.Component):
    """Turns the rows of all slaves, side by side, by ``turn`` halves of a row: part p comes from part p + ``turn``.

    Latency 1; a turn a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    turn : In(range(params.row_parts))
    i : In(array of params.conv.slaves 8 * params.conv.row_bytes)
    o : Out(array of params.conv.slaves 8 * params.conv.row_bytes)
        Registered.
    """

    def __init__(self, params):
        rows = data.ArrayLayout(8 * params.conv.row_bytes, params.conv.slaves)
        self._part_bits = rows.size // params.row_parts
        super().__init__({"turn": In(range(params.row_parts)), "i": In(rows), "o": Out(rows)})

    def elaborate(self, platform):
        m = Module()
        rows = self.i.as_value()
        for bit, turns in enumerate(self.turn):
            turned, count = Signal.like(rows, name=f"turned{bit}"), self._part_bits << bit
            m.d.comb += turned.eq(Mux(turns, Cat(rows[count:], rows[:count]), rows))
            rows = turned
        m.d.sync += self.o.eq(rows)
        return m
