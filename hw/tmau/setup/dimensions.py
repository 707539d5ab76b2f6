"""A command on a tensor, one dimension a cycle: its numbers, the origin of the walk, and what folds into a run."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import TENSOR_OPCODES, Error

from ..descriptor.layouts import ListSignature, LookupLayout, aligned

__all__ = ["DimensionLayout", "DimensionPicker", "Fold", "OriginSum"]

_STAY = 3  # least number of cycles that a command stays at the input


class DimensionLayout(data.StructLayout):
    """One dimension of a command on a tensor.

    Dimensions have the numbers of the walk, so that 1 to 3 are W, H, D in im2col mode. In that mode the spatial
    dimensions follow a second time, for the distance from the start to the lower corner.
    """

    def __init__(self, params):
        super().__init__(
            {
                "number": unsigned(3),  # 0 to 4
                "again": unsigned(1),
                "first": unsigned(1),  # of the command
                "last": unsigned(1),
                "position": signed(34),  # coordinate plus offset; with ``again``: lower corner minus coordinate
                "stride": unsigned(min(40, params.addr_width)),  # bytes
                "size": unsigned(32),  # elements of the tensor minus one
                "traversal": unsigned(3),  # step minus one
                "count": unsigned(9),  # indices
                "bytes": unsigned(params.smem.addr_width + 1),  # of a run of this dimension and all below
                "contiguous": unsigned(1),  # continues the previous dimension without a gap
                "low": signed(18),  # im2col: corners of the bounding box, with the offset
                "high": signed(35),
            }
        )


class DimensionPicker(wiring.Component):
    """Splits a command into its dimensions, one a cycle, innermost first. Latency 1 from ``i`` to the first one.

    In tile mode there are as many dimensions as the rank; in im2col mode the spatial dimensions follow a second time. A
    command that needs no dimension has one. The command stays at the input until its last dimension has been picked,
    but at least three steps, so that the two stages after the first dimension need no copy of it.
    """

    def __init__(self, params):
        self._params = params
        self.number, self.again = Signal(3), Signal()  # of the next dimension
        self.begun = Signal()  # the next dimension is not the command's first, which has number 0
        self.spatial = Signal(2)  # its number if that is 1 to 3, otherwise 0: spatial dimensions may have an offset
        self.place = Signal(3)  # its number in the descriptor, unless it is the command's first
        self.age, self.picked = Signal(range(_STAY)), Signal()  # steps at the input; all dimensions are picked
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                "dimensions": Out(ListSignature(params)),  # Of the command at ``i``, with which its first one arrives.
                "step": In(1),  # All stages advance.
                "valid": Out(1),  # A dimension is at ``o``. Both are registered.
                "o": Out(DimensionLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        command, checked = self.i.payload.command, self.i.payload.checked
        number, again, age, picked = self.number, self.again, self.age, self.picked
        needed, outermost = Signal(), Signal(3)
        turn, last, leaves = Signal(), Signal(), Signal()
        following = Signal(3)  # number of the dimension after the next one
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
        """The numbers of the dimension."""
        command, checked, o = self.i.payload.command, self.i.payload.checked, self.o
        listed = self.dimensions.listed
        # The descriptor's dimension that comes first in the walk: 0, or with interleaved channels 1 to 3.
        outer = Mux(checked.im2col & checked.interleaved, (checked.rank - 2)[:2], 0)

        coord, moved = Signal(signed(32)), Signal(signed(18))
        offset = Signal(16)
        # Selected separately, so that only one multiplexer lies between ``begun`` and the sum.
        m.d.comb += coord.eq(Mux(self.begun, Array(command.coords)[self.place], Array(command.coords)[outer]))
        if self._params.has("im2col"):  # otherwise offsets are zero or the command is refused
            with m.Switch(self.spatial):
                for k in range(3):
                    with m.Case(k + 1):
                        m.d.comb += offset.eq(command.offsets[k])
        # The bounding box moves with the offset.
        m.d.comb += moved.eq(Mux(again, listed.low, offset))
        picked = {
            "position": moved + (coord ^ again.replicate(32).as_signed()) + again,
            "low": listed.low + offset,
            "high": listed.high + offset,
        }
        picked |= {name: listed[name] for name in ("size", "traversal", "count", "bytes")}
        picked["stride"] = Mux(self.begun, aligned(self._params, listed.stride), listed.stride)
        picked["contiguous"] = Array([0, *checked.contiguous])[number]
        with m.If(self.step):
            m.d.sync += [o[name].eq(value) for name, value in picked.items()]


_LIMB = 17  # bits of an unsigned factor of a multiplier in an FPGA


class OriginSum(wiring.Component):
    """Sums products of positions and strides, one a cycle, modulo 2^addr_width.

    Two stages: products of limbs, then their sum.
    """

    def __init__(self, *, addr_width):
        self._width = addr_width
        self._stride_width = min(40, addr_width)
        super().__init__(
            {
                "step": In(1),  # Both stages advance.
                # Factors of the next product.
                "position": In(signed(34)),
                "stride": In(self._stride_width),
                "none": In(1),  # The product is zero.
                "start": In(1),  # The product is the first one of a sum, which begins at ``address``.
                "address": In(addr_width),
                "sum": Out(addr_width),  # Includes the product of the factors before the last step.
            }
        )

    def elaborate(self, platform):
        m = Module()
        total = Signal(self._width)  # without the current product
        places = {}  # products of limbs by their lowest bit
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

    A dimension folds into the run if it continues the dimensions below without a gap and these are entirely inside. The
    outermost folded dimension decides which part is inside. It is dimension 0 or has traversal 1, so its distances need
    no division. If dimension 0 is gathered, a run is one unit, either inside or outside. ``length`` is the number of
    bits of a number of bytes.
    """

    def __init__(self, length):
        self._length = length
        super().__init__(
            {
                "step": In(1),  # Strobe: the dimension at the inputs is complete.
                "first": In(1),  # It is dimension 0.
                # Bytes of one index if all previous dimensions are folded: of a unit, or of these dimensions.
                "piece": In(length),
                "gather": In(1),  # Valid with ``first``.
                # Distances to both edges of the tensor, from ``BoundsDistance``.
                "start": In(9),
                "end": In(9),
                "count": In(9),
                "dimension_bytes": In(length),  # Bytes of this dimension and all below.
                "contiguous": In(1),  # It continues the previous dimension without a gap; 0 with ``gather``.
                # Combinational: it is part of the run; it is entirely inside, so the next one may be part of the run.
                "folded": Out(1),
                "whole": Out(1),
                # Bytes of the dimension before ``start`` and before ``end``. Combinational; undefined with ``gather``
                # or if a previous dimension is not folded.
                "start_bytes": Out(length),
                "end_bytes": Out(length),
                # Of the dimensions so far: bytes of a run, and the part of it that is inside. Registered.
                "bytes": Out(length),
                "data_start": Out(length),
                "data_end": Out(length),
                "data_bytes": Out(length),
            }
        )

    def elaborate(self, platform):
        m = Module()
        before = Signal()  # all previous dimensions are folded and entirely inside
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
