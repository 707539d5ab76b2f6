"""Rules of commands: windows, reductions, cores, and all rules of commands on tensors (docs/tmau.md, "Errors").

The functions are combinational; their users place the registers.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, TENSOR_OPCODES, Element, Error, Opcode, Reduction
from tilewright.spec.cluster import DELIVERY, MOST_CORES, ClusterError

from ...lib.layouts import command_view
from ...reduce.floats import is_summed
from ..descriptor.layouts import FaultLayout, LookupLayout
from ..layouts import WindowsLayout

__all__ = ["CommandRules", "above", "lands_apart", "missing_floats", "named_owner", "named_receivers", "no_reduction",
           "outside_global", "outside_shared", "reaches_out", "unnameable", "unreadable"]  # fmt: skip

_E, _R = Element, Reduction
_WHOLE = (_E.U32, _E.S32, _E.U64, _E.S64)
_EXTREMES = (*_WHOLE, _E.F16, _E.BF16)
#: Element types of each reduction.
_ELEMENTS = {
    _R.ADD: (_E.U32, _E.S32, _E.U64, _E.F16, _E.BF16, _E.F32),
    _R.MIN: _EXTREMES,
    _R.MAX: _EXTREMES,
    _R.INC: (_E.U32,),
    _R.DEC: (_E.U32,),
    _R.AND: _WHOLE,
    _R.OR: _WHOLE,
    _R.XOR: _WHOLE,
}


def no_reduction(reduction, element):
    """Whether the reduction does not exist for the element type; true for ``Reduction.NONE``."""
    return ~Cat(
        (reduction == op) & Cat(element == member for member in elements).any() for op, elements in _ELEMENTS.items()
    ).any()


def missing_floats(params, element):
    """Whether reductions of the element type need floats and the hardware has none."""
    if params.has("reductions_float"):
        return Const(0)
    return is_summed(element)


def above(address, bits):
    """Whether an address has bits set from bit ``bits`` upward; sums use the lower bits only."""
    return address[bits:].any() if bits < len(address) else Const(0)


def outside_global(windows, first, last):
    """Whether bytes ``first`` … ``last`` leave the global window.

    Parameters
    ----------
    windows : View of WindowsLayout
    first, last : Value
        Byte addresses. ``last`` must not wrap; one bit may stand for all bits above the address space.
    """
    end = 12 + len(windows.global_first)
    return windows.confine_global & (
        last[end:].any() | (first[12:end] < windows.global_first) | (last[12:end] > windows.global_last)
    )


def outside_shared(windows, first, last):
    """Whether bytes ``first`` … ``last`` of shared memory leave the shared window; both are valid addresses."""
    return windows.confine_shared & ((first >> 7 < windows.shared_first) | (last >> 7 > windows.shared_last))


def reaches_out(windows, first, end):
    """As :func:`outside_shared`, with an exclusive ``end``, which saves a subtraction."""
    beyond = Cat(Const(0, 7), windows.shared_last + 1) < end
    return windows.confine_shared & ((first >> 7 < windows.shared_first) | beyond)


def named_receivers(params, command):
    """Mask of the receivers that a command names; 0: none, the bytes go to the issuer's shared memory."""
    delivery = command_view(DELIVERY, command)
    return Mux(delivery.multicast, delivery.cores[: params.cores], 0)


def unnameable(params, windows, command):
    """Whether a multicast names no core, or a core that does not exist or that this core may not name."""
    delivery, count = command_view(DELIVERY, command), params.cores
    strange = (delivery.cores[:count] & ~windows.allowed).any() | delivery.cores[count:].any()
    return delivery.multicast & (strange | (delivery.cores == 0))


def unreadable(params, windows, command):
    """Whether the source of a command is a core that does not exist or that this core may not name."""
    delivery = command_view(DELIVERY, command)
    return delivery.remote_source & ~_of_all(params, windows.allowed).bit_select(delivery.source_core, 1)


def named_owner(params, windows, command):
    """Mask of the other core whose shared memory a COPY_BLOCK from shared memory reads; 0: none."""
    delivery = command_view(DELIVERY, command)
    return Mux(delivery.remote_source, (1 << delivery.source_core)[: params.cores] & ~windows.own, 0)


def lands_apart(params, windows, command):
    """Whether the core whose shared memory is read is not among the receivers."""
    delivery, own = command_view(DELIVERY, command), _of_all(params, windows.own)
    receivers = Mux(delivery.multicast, delivery.cores, own)
    return ~(receivers & Mux(delivery.remote_source, 1 << delivery.source_core, own)).any()


def _of_all(params, cores):
    """Extends a mask of the existing cores to all possible cores."""
    return Cat(cores, Const(0, MOST_CORES - params.cores))


class CommandRules(wiring.Component):
    """Finds the first rule that a command breaks, except ``START``, which Setup checks dimension by dimension."""

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(LookupLayout(params)),
                "windows": In(WindowsLayout(params)),
                # For the command at ``i`` in the previous and this cycle: its known fault, or the broken rule with the
                # lowest code, then the lowest field number. NONE if there is none, and for commands without a tensor.
                "fault": Out(FaultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        opcode = self.i.command.opcode
        self._loads = opcode == Opcode.LOAD
        self._writes = (opcode == Opcode.STORE) | (opcode == Opcode.REDUCE)
        self._shared = self._loads | (self._writes & ~self.i.command.fill)  # the command uses shared memory
        self._signals = self._loads & self.i.command.signal

        rules = [*self._coordinate_rules(), *self._shared_rules(m), *self._other_rules(m), *self._window_rules()]
        on_tensor = Cat(opcode == member for member in TENSOR_OPCODES).any()
        broken, lowest = Signal(len(rules)), Signal(len(rules))
        m.d.sync += broken.eq(Mux(on_tensor, Cat(condition for _, _, condition in rules), 0))

        m.d.comb += lowest.eq(broken & -broken)
        with m.If(self.i.fault.code != Error.NONE):
            m.d.comb += self.fault.eq(self.i.fault)
        with m.Else(), m.Switch(lowest):
            for index, (code, field, _) in enumerate(rules):
                with m.Case(1 << index):
                    m.d.comb += [self.fault.code.eq(code), self.fault.field.eq(field)]
        return m

    # Every rule is (code, field number, whether ``i`` breaks it), by code and then by field number.

    def _coordinate_rules(self):
        checked = self.i.checked
        corner = checked.store_corner
        bad_corner = self._writes & checked.im2col & corner.broken
        wrong = Cat(
            Mux(checked.rank > d, self._writes & (coord < 0), coord.any())
            for d, coord in enumerate(self.i.command.coords)
        )
        reduces = self.i.command.opcode == Opcode.REDUCE
        return [
            (Error.UNSUPPORTED, DESCRIPTOR.index("element"), reduces & missing_floats(self._params, checked.element)),
            (Error.CORNER, DESCRIPTOR.index("lower"), bad_corner & ~corner.upper),
            (Error.CORNER, DESCRIPTOR.index("upper"), bad_corner & corner.upper),
            (Error.COORDS, _field("coords"), wrong.any()),
        ]

    def _shared_rules(self, m):
        command, checked, smem = self.i.command, self.i.checked, self._params.smem
        start = command.smem
        self._end = Signal(smem.addr_width + 2)
        m.d.comb += self._end.eq(start[: smem.addr_width] + checked.footprint)
        outside = start[smem.addr_width :].any() | (self._end > smem.size_bytes)
        # A fill takes no bytes from shared memory, but it must not be larger, because counters are not wider.
        too_far = checked.too_large | Mux(self._shared, outside, checked.footprint > smem.size_bytes)
        barrier = command.barrier
        return [
            (Error.SMEM_ALIGNMENT, _field("smem"), self._shared & start[:7].any()),
            (Error.SMEM_RANGE, _field("smem"), (self._loads | self._writes) & too_far),
            (Error.BARRIER_ALIGNMENT, _field("barrier"), self._signals & barrier[:3].any()),
            (Error.BARRIER_RANGE, _field("barrier"), self._signals & barrier[smem.addr_width :].any()),
        ]

    def _other_rules(self, m):
        command, checked = self.i.command, self.i.checked
        allowed = Signal(data.ArrayLayout(16, 3))
        with m.If(checked.im2col & ~self._writes), m.Switch(checked.rank):
            for spatial, bits in enumerate((16, 8, 5), 1):
                with m.Case(spatial + 2):
                    m.d.comb += [allowed[k].eq((1 << bits) - 1) for k in range(spatial)]
        too_far = Cat(command.offsets[k] & ~allowed[k] for k in range(3)).any()
        impossible = (command.opcode == Opcode.REDUCE) & no_reduction(command.reduction, checked.element)
        return [(Error.OFFSETS, _field("offsets"), too_far), (Error.REDUCTION, _field("reduction"), impossible)]

    def _window_rules(self):
        command, checked, windows = self.i.command, self.i.checked, self.windows
        width = self._params.smem.addr_width
        smem, barrier = command.smem[:width], command.barrier[:width]
        leaves = outside_global(windows, checked.address, Cat(checked.last, checked.beyond))
        cluster = []
        if self._params.cores > 1:
            cluster += [(ClusterError.CORES, 0, self._loads & unnameable(self._params, windows, command))]
        return [
            (Error.WINDOW, DESCRIPTOR.index("address"), leaves),
            (Error.WINDOW, _field("smem"), self._shared & reaches_out(windows, smem, self._end)),
            (Error.WINDOW, _field("barrier"), self._signals & outside_shared(windows, barrier, barrier)),
            *cluster,
        ]


def _field(name):
    return COMMAND_FIELD + COMMAND.index(name)
