"""Line cache: rows of B that cross memory, from which columns are picked."""

from itertools import product

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..lib.logic import mux_tree
from ..smem.layouts import CHUNK_BITS
from .params import LANES

__all__ = ["LineCache", "PickLayout", "PlaceLayout", "RowsLayout", "pick_places", "pick_positions"]

_BLOCKS = 2
_MAX_KB = 4
_ROW_BYTES = CHUNK_BITS // 8

#: Distance of unit q of a column from unit 0, in positions. The position of unit 0 is its byte in the row, modulo 8.
#: Columns that are picked together have so few units that no two bytes of a bank share a position: kb1 uses 0–7; kb2
#: 0–3 and 4–7; kb3 and kb4 0–1, 4–5, 2–3 and 6–7.
_AHEAD = (0, 4, 2, 6)


class RowsLayout(data.StructLayout):
    """Eight rows of a block, 16 bytes each."""

    def __init__(self):
        super().__init__(
            {
                "slot": 1,
                "octet": 2,
                "wide": 1,  # elements have 16 bits
                "enable": unsigned(LANES),  # rows that are inside; the others are zero
                "rows": data.ArrayLayout(CHUNK_BITS, LANES),
            }
        )


class PlaceLayout(data.StructLayout):
    """Address in the memory of a position, within a block."""

    def __init__(self, params):
        super().__init__({"share": range(_shares(params)), "octet": _octet_width(params)})


class PickLayout(data.StructLayout):
    """Adjacent columns of a block: lane l gets unit l mod kb of column l div kb."""

    def __init__(self, params):
        ways = params.smem.chunks_a_cycle
        super().__init__(
            {
                "slot": 1,
                "kb": 2,  # as stored
                "wide": 1,  # elements have 16 bits
                "place": 4,  # byte of column 0 in the rows; column c is c elements further on, modulo 16 bytes
                "part": range(LANES // ways),  # lanes from ways · part on
                "positions": data.ArrayLayout(3, ways),  # of these lanes: pick_positions of kb, wide and place
                "places": data.ArrayLayout(PlaceLayout(params), LANES),  # pick_places of kb, wide and place
            }
        )


def _shares(params):
    return _ROW_BYTES // params.unit_bytes


def _octet_width(params):
    return (_MAX_KB * params.unit_bytes // LANES - 1).bit_length()


def _units_log2(params):
    """Log2 of the units of 8-bit elements in an octet; an octet has twice as many units of 16-bit elements."""
    return (LANES // params.unit_bytes).bit_length() - 1


def _first_position(pick):
    """Position of column 0, unit 0."""
    return Mux(pick.wide, pick.place[1:], pick.place[:3])


def pick_positions(m, pick):
    """Position of the unit of each lane, to be registered before the pick.

    Parameters
    ----------
    m : Module
    pick : View
        With fields ``kb``, ``wide`` and ``place``.

    Returns
    -------
    list of Value
    """
    positions = []
    for lane in range(LANES):
        ahead, position = Signal(3, name=f"ahead{lane}"), Signal(3, name=f"position{lane}")
        with m.Switch(pick.kb):
            for kb in range(1, _MAX_KB + 1):
                with m.Case(kb - 1):
                    m.d.comb += ahead.eq(lane // kb + _AHEAD[lane % kb])
        m.d.comb += position.eq(_first_position(pick) + ahead)
        positions.append(position)
    return positions


def pick_places(m, params, pick):
    """Address of a pick in the memory of each position, to be registered before the pick.

    Parameters
    ----------
    m : Module
    params : PeParams
    pick : View
        With fields ``kb``, ``wide`` and ``place``.

    Returns
    -------
    list of View
        A :class:`PlaceLayout` for each position.
    """
    log2 = _units_log2(params)
    first = Signal(3)
    m.d.comb += first.eq(_first_position(pick))
    places = []
    for position in range(LANES):
        distance, unit = Signal(3, name=f"distance{position}"), Signal(2, name=f"unit{position}")
        byte = Signal(3, name=f"byte{position}")  # byte in the row, modulo 8
        place = Signal(PlaceLayout(params), name=f"place{position}")
        upper = pick.place[3] ^ (first > byte)  # the byte is in the upper half of the row
        m.d.comb += [
            distance.eq(position - first),
            # The inverse of _AHEAD, for units below kb.
            unit.eq(Cat(distance[2] & (pick.kb != 0), distance[1] & pick.kb[1])),
            byte.eq(position - Cat(Const(0, 1), unit[1], unit[0])),
            place.share.eq(Mux(pick.wide, unit[: log2 + 1], Cat(upper, unit[:log2]))),
            place.octet.eq(Mux(pick.wide, unit >> (log2 + 1), unit >> log2)),
        ]
        places.append(place)
    return places


class LineCache(wiring.Component):
    """Two blocks of up to four units of rows, from which adjacent columns are picked.

    Element e of unit q of a column is in row q·k + e, where k is the number of elements of a unit. An octet of rows is
    written at once, and a lane reads a unit. Therefore bytes are stored in banks: bank b has byte b of every unit, and
    a bank has eight positions, each a memory, of which one read returns the byte that a pick needs there. The units of
    a column are in different positions of a bank: bytes are rotated when they are written, and rotated back after the
    read by two 4-to-1 multiplexers for each lane, one of which returns its unit.

    A position stores one byte of a bank in a cycle, and there are several in an octet: one for each *share*. A share is
    one unit of eight columns. Shares are written one after the other while the octet is held at ``fill``.

    Latency: none from ``pick`` to ``units``; written data can be picked in the next cycle. Throughput: one pick a
    cycle; one octet in ``16 / params.unit_bytes`` cycles.
    """

    def __init__(self, params):
        self._params = params
        self._unit_bytes, self._ways = params.unit_bytes, params.smem.chunks_a_cycle
        self._shares, self._octet_width = _shares(params), _octet_width(params)
        depth = _BLOCKS * self._shares << self._octet_width
        self._positions = [Memory(shape=unsigned(params.unit_bits), depth=depth, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                # All octets of a block come before it is picked from. Accepted with the last share; ``ready`` is a
                # register.
                "fill": In(stream.Signature(RowsLayout())),
                "pick": In(PickLayout(params)),  # ``wide`` as in the fills of the block
                "pickable": Out(1),  # all data that ``pick`` may need has been written
                # Unit of each lane: [0] if it is in the lower four positions, else [1]. Bytes of rows that are outside,
                # and lanes without a whole column, are undefined.
                "units": Out(data.ArrayLayout(data.ArrayLayout(params.unit_bits, 2), self._ways)),
                # Bytes of ``units`` whose rows are inside; the others must be cleared.
                "inside": Out(data.ArrayLayout(params.unit_bytes, self._ways)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        fill, width = self.fill.payload, self._octet_width
        share = Signal(range(self._shares))
        m.d.comb += self.fill.ready.eq(share == self._shares - 1)
        with m.If(self.fill.valid):
            m.d.sync += share.eq(share + 1)
        rotated = self._rotate(m, share)
        words = []  # read data by position: a byte of every bank
        for position, memory in enumerate(self._positions):
            m.submodules[f"position{position}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(Cat(share, fill.octet[:width], fill.slot)),
                write.data.eq(Cat(bank[position] for bank in rotated)),
                write.en.eq(self.fill.valid),
                read.addr.eq(Cat(self.pick.places[position], self.pick.slot)),
            ]
            words.append(read.data)
        for position, halves in zip(self.pick.positions, self.units, strict=True):
            for half, unit in enumerate(halves):
                m.d.comb += unit.eq(mux_tree(position[:2], {n: words[4 * half + n] for n in range(4)}))
        self._mask(m, share)
        return m

    def _rotate(self, m, share):
        """Bytes of the share that is written: by bank, then by position."""
        fill, log2, unit_bytes = self.fill.payload, _units_log2(self._params), self._unit_bytes
        unit = Signal(2)  # number of the unit in its column
        narrow = Cat(share[1:], fill.octet)[: log2 + 2] if log2 else fill.octet
        m.d.comb += unit.eq(Mux(fill.wide, Cat(share, fill.octet), narrow))
        rotated = []
        for bank in range(unit_bytes):
            cells = [Signal(8, name=f"cell{bank}_{byte}") for byte in range(LANES)]  # by byte of the row, modulo 8
            for byte, cell in enumerate(cells):
                sources = {}  # by ``wide`` and share
                for number in range(self._shares):
                    rows = (number // 2 * unit_bytes + bank, number * unit_bytes // 2 + bank // 2)
                    places = (number % 2 * LANES + byte, 2 * byte + bank % 2)
                    for wide, (row, place) in enumerate(zip(rows, places, strict=True)):
                        sources[number << 1 | wide] = fill.rows[row].word_select(place, 8)
                m.d.comb += cell.eq(mux_tree(Cat(fill.wide, share), sources))
            rotated.append([Signal(8, name=f"turned{bank}_{position}") for position in range(LANES)])
            for position, value in enumerate(rotated[-1]):
                sources = {number: cells[(position - ahead) % LANES] for number, ahead in enumerate(_AHEAD)}
                m.d.comb += value.eq(mux_tree(unit, sources))
        return rotated

    def _mask(self, m, share):
        """Which rows are inside, and whether all data has been written."""
        fill, pick, unit_bytes = self.fill.payload, self.pick, self._unit_bytes
        octets = _MAX_KB * unit_bytes // LANES
        inside = Signal(data.ArrayLayout(data.ArrayLayout(LANES, octets), _BLOCKS))
        for block, octet in product(range(_BLOCKS), range(octets)):
            here = (fill.slot == block) & (fill.octet[: self._octet_width] == octet)
            with m.If(self.fill.valid & (share == 0) & here):
                m.d.sync += inside[block][octet].eq(fill.enable)
        rows = Signal(LANES * octets)
        m.d.comb += rows.eq(Mux(pick.slot, inside[1], inside[0]))
        units = [Signal(unit_bytes, name=f"inside{unit}") for unit in range(_MAX_KB)]
        for unit, bits in enumerate(units):
            narrow = rows.word_select(unit, unit_bytes)
            wide = Cat(rows[unit * unit_bytes // 2 + bank // 2] for bank in range(unit_bytes))
            m.d.comb += bits.eq(Mux(pick.wide, wide, narrow))
        with m.Switch(pick.kb):
            for kb in range(1, _MAX_KB + 1):
                with m.Case(kb - 1):
                    for way, bits in enumerate(self.inside):
                        lanes = range(way, LANES, self._ways)
                        m.d.comb += bits.eq(mux_tree(pick.part, {n: units[lane % kb] for n, lane in enumerate(lanes)}))
        # The first of two shares has the lower half of the rows, or unit 0 of 16-bit elements.
        in_first = Mux(pick.wide, pick.kb == 0, pick.place == 0) if self._shares == 2 else 0
        m.d.comb += self.pickable.eq((share == 0) | in_first)
