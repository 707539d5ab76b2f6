"""A command on a tensor, dimension by dimension."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import TENSOR_OPCODES, Error

from ..descriptor.layouts import ListSignature, LookupLayout, aligned
from .layouts import DimensionLayout

__all__ = ["DimensionPicker", "Fold", "OriginSum"]

_STAY = 3  # cycles that a command stays at the input at least


class DimensionPicker(wiring.Component):
    """Picks a command's dimensions out of it, one a cycle, innermost first. Latency 1 from ``i`` to the first one.

    In tile mode a command has as many as its rank. In im2col mode those of the rank come, and then the spatial ones
    again. A command that needs none of its dimensions has one. The command stays at the input until its last dimension
    is picked, and three steps at least, so that nothing else of it has to be kept until two steps behind its first.
    """

    def __init__(self, params):
        self.params = params
        self.number, self.again = Signal(3), Signal()  # of the next dimension
        self.begun = Signal()  # that is not the command's first, which has number 0
        self.spatial = Signal(2)  # its number if that is 1 to 3, which may have an offset
        self.place = Signal(3)  # of the next one, unless it is a command's first: which dimension of the descriptor
        self.age, self.picked = Signal(range(_STAY)), Signal()  # steps that the command has been here; all are picked
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                # Of the command at ``i``: its first one comes with it.
                "dimensions": Out(ListSignature(params)),
                # Everything moves on.
                "step": In(1),
                # There is a dimension at ``o``, registered.
                "valid": Out(1),
                "o": Out(DimensionLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        command, checked = self.i.payload.command, self.i.payload.checked
        number, again, age, picked = self.number, self.again, self.age, self.picked
        needed, outermost = Signal(), Signal(3)
        turn, last, leaves = Signal(), Signal(), Signal()
        following = Signal(3)  # the dimension behind the next one, of the same command
        tensor = Cat(command.opcode == member for member in TENSOR_OPCODES).any()
        m.d.comb += [
            needed.eq(tensor & (self.i.payload.fault.code == Error.NONE)),
            outermost.eq(checked.rank - 1),
            # In im2col mode N is 4, and the outermost spatial dimension is rank - 2.
            turn.eq(checked.im2col & (number == checked.rank - 2)),
            last.eq(~needed | Mux(checked.im2col, again & turn, number == outermost)),
            leaves.eq(self.step & (last | picked) & (age == _STAY - 1)),
            self.i.ready.eq(leaves),
            self.dimensions.number.eq(following),
            self.dimensions.look.eq(self.step & self.i.valid),
        ]
        with m.If(checked.im2col & (number == 4)):
            m.d.comb += following.eq(1)
        with m.Else():
            m.d.comb += following.eq(Mux(turn & ~again, 4, number + 1))
        with m.If(self.step):
            m.d.sync += self.valid.eq(self.i.valid & ~picked)
        with m.If(self.step & self.i.valid):
            with m.If(leaves):
                m.d.sync += [number.eq(0), self.begun.eq(0), self.spatial.eq(0)]
                m.d.sync += [again.eq(0), age.eq(0), picked.eq(0)]
            with m.Else():
                m.d.sync += [
                    picked.eq(picked | last),
                    age.eq(Mux(age == _STAY - 1, age, age + 1)),
                    number.eq(following),
                    self.begun.eq(1),
                    self.spatial.eq(Mux(following[2], 0, following[:2])),
                    again.eq(again | (checked.im2col & (number == 4))),
                ]
            m.d.sync += [
                self.o.number.eq(number),
                self.o.again.eq(again),
                self.o.first.eq(~self.begun),
                self.o.last.eq(last),
            ]
        with m.If(self.step):
            in_im2col = Mux(following == 4, outermost, following - checked.interleaved)
            m.d.sync += self.place.eq(Mux(checked.im2col, in_im2col, following))
        self._pick(m, number, again)
        return m

    def _pick(self, m, number, again):
        """What belongs to the dimension."""
        command, checked, o = self.i.payload.command, self.i.payload.checked, self.o
        listed = self.dimensions.listed
        # The dimension of the descriptor that is the first in the walk: 0, or with interleaved channels 1 to 3.
        outer = Mux(checked.im2col & checked.interleaved, (checked.rank - 2)[:2], 0)

        coord, moved = Signal(signed(32)), Signal(signed(18))
        offset = Signal(16)
        # Chosen apart, so that only one choice stands between what is found out here and the sum.
        m.d.comb += coord.eq(Mux(self.begun, Array(command.coords)[self.place], Array(command.coords)[outer]))
        if self.params.has("im2col"):  # otherwise offsets are zero, or the command is refused
            with m.Switch(self.spatial):
                for k in range(3):
                    with m.Case(k + 1):
                        m.d.comb += offset.eq(command.offsets[k])
        # The bounding box moves with the offset, and does so in front of what it is compared with.
        m.d.comb += moved.eq(Mux(again, listed.low, offset))
        picked = {
            "position": moved + (coord ^ again.replicate(32).as_signed()) + again,
            "low": listed.low + offset,
            "high": listed.high + offset,
        }
        picked |= {name: listed[name] for name in ("size", "traversal", "count", "bytes")}
        picked["stride"] = Mux(self.begun, aligned(self.params, listed.stride), listed.stride)
        picked["contiguous"] = Array([0, *checked.contiguous])[number]
        with m.If(self.step):
            m.d.sync += [o[name].eq(value) for name, value in picked.items()]


_LIMB = 17  # what a multiplier of an FPGA takes as an unsigned factor


class OriginSum(wiring.Component):
    """Adds up products, one a cycle, modulo 2^addr_width. Two stages: products of limbs, then their sum.

    Parameters
    ----------
    addr_width : int
        Bits of an address.
    """

    def __init__(self, *, addr_width):
        self._width = addr_width
        self._stride_width = min(40, addr_width)
        super().__init__(
            {
                # Everything moves on.
                "step": In(1),
                "position": In(signed(34)),
                # Factors of the next product.
                "stride": In(self._stride_width),
                # The product is to be zero.
                "none": In(1),
                # The product is the first one of a sum, which begins at ``address``.
                "start": In(1),
                "address": In(addr_width),
                # With the products up to the one whose factors were there before the last step.
                "sum": Out(addr_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        total = Signal(self._width)  # without the products at hand
        places = {}  # products by the bit that they begin at
        for i, position in enumerate((self.position[:_LIMB], self.position[_LIMB:].as_signed())):
            for j in range(0, self._stride_width, _LIMB):
                stride = self.stride[j : j + _LIMB]
                place = _LIMB * i + j
                if place < self._width:
                    shape = signed(2 * _LIMB) if i else unsigned(2 * _LIMB)
                    product = Signal(shape, name=f"product{i}_{j // _LIMB}")
                    places.setdefault(place, []).append(product)
                    with m.If(self.step):
                        m.d.sync += product.eq(position * stride)
                        with m.If(self.none):
                            m.d.sync += product.eq(0)
        addends = [product << place for place, products in places.items() for product in products]
        m.d.comb += self.sum.eq(sum(addends, total))
        with m.If(self.step):
            m.d.sync += total.eq(self.sum)
            with m.If(self.start):
                m.d.sync += total.eq(self.address)
        return m


class Fold(wiring.Component):
    """Which dimensions fold into a run, and which part of a run is inside the tensor; one dimension a cycle.

    A dimension folds into the run if it continues those below it without a gap and they lie wholly inside. The
    outermost folded dimension then decides which part is inside: it is dimension 0 or has traversal 1, so that its
    distances need no division. Where dimension 0 is gathered a run is one unit, which is inside or not as a whole.

    Parameters
    ----------
    length : int
        Bits of a number of bytes.
    """

    def __init__(self, length):
        self._length = length
        super().__init__(
            {
                # Strobe: the dimension at the inputs is done.
                "step": In(1),
                # It is dimension 0.
                "first": In(1),
                # Bytes of one index of it, if all dimensions before are folded: of dimension 0's unit, or of those
                # dimensions.
                "piece": In(length),
                # With ``first`` only.
                "gather": In(1),
                # Elements to both edges of the tensor, limited to ``count``, as ``BoundsDistance`` gives them.
                "start": In(9),
                "end": In(9),
                "count": In(9),
                # Bytes of this dimension and those before.
                "dimension_bytes": In(length),
                # It continues the dimension before on both sides without a gap; never with ``gather``.
                "contiguous": In(1),
                # It is part of the run; the next one may be. Combinational.
                "folded": Out(1),
                "whole": Out(1),
                # Bytes of the dimension before ``start``, and before ``end``. Combinational; if all dimensions before
                # are folded, and not with ``gather``.
                "start_bytes": Out(length),
                "end_bytes": Out(length),
                # Registered, of the dimensions so far: bytes of a run; the part of it that is inside, if any is, and
                # its bytes.
                "bytes": Out(length),
                "data_start": Out(length),
                "data_end": Out(length),
                "data_bytes": Out(length),
            }
        )

    def elaborate(self, platform):
        m = Module()
        before = Signal()  # all dimensions before are folded, and lie wholly inside
        gathered = self.first & self.gather
        m.d.comb += [
            self.folded.eq(Mux(self.first, ~self.gather, before & self.contiguous)),
            self.whole.eq(self.folded & (self.start == 0) & (self.end == self.count)),
            self.start_bytes.eq(self.start * self.piece),
            self.end_bytes.eq(self.end * self.piece),
        ]
        with m.If(self.step):
            m.d.sync += before.eq(self.whole)
            with m.If(gathered):
                m.d.sync += [
                    self.bytes.eq(self.piece),
                    self.data_start.eq(0),
                    self.data_end.eq(self.piece),
                    self.data_bytes.eq(self.piece),
                ]
            with m.Elif(self.folded):
                m.d.sync += [
                    self.bytes.eq(self.dimension_bytes),
                    self.data_start.eq(self.start_bytes),
                    self.data_end.eq(self.end_bytes),
                    self.data_bytes.eq(self.end_bytes - self.start_bytes),
                ]
        return m
