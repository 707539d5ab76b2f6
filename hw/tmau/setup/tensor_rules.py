"""The rules of a command on a descriptor, in hardware (docs/tmau.md, "Errors")."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, TENSOR_OPCODES, Error, Opcode
from tilewright.golden.spec.cluster.errors import ClusterError

from ..descriptor.layouts import FaultLayout, LookupLayout
from ..layouts import WindowsLayout
from .delivery import unnameable
from .rules import missing_floats, no_reduction, outside_global, outside_shared, reaches_out

__all__ = ["CommandRules"]


class CommandRules(wiring.Component):
    """Finds the first rule that a command breaks, but for ``START``, which Setup looks at dimension by dimension.

    Members
    -------
    i : In(LookupLayout)
    windows : In(WindowsLayout)
    fault : Out(FaultLayout)
        Of the command that was there a cycle ago and still is: what was known, otherwise lowest code, then lowest field
        number. Code NONE if it can run, and for commands without a tensor.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "i": In(LookupLayout(params)),
                "windows": In(WindowsLayout(params)),
                "fault": Out(FaultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        opcode = self.i.command.opcode
        self._loads = opcode == Opcode.LOAD
        self._writes = (opcode == Opcode.STORE) | (opcode == Opcode.REDUCE)
        self._shared = self._loads | (self._writes & ~self.i.command.fill)  # shared memory is read or written
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

    # Every rule is (code, field number, broken by ``i``), in order of code and then of field number.

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
            (Error.UNSUPPORTED, DESCRIPTOR.index("element"), reduces & missing_floats(self.params, checked.element)),
            (Error.CORNER, DESCRIPTOR.index("lower"), bad_corner & ~corner.upper),
            (Error.CORNER, DESCRIPTOR.index("upper"), bad_corner & corner.upper),
            (Error.COORDS, _field("coords"), wrong.any()),
        ]

    def _shared_rules(self, m):
        command, checked, smem = self.i.command, self.i.checked, self.params.smem
        start = command.smem
        self._end = Signal(smem.addr_width + 2)
        m.d.comb += self._end.eq(start[: smem.addr_width] + checked.footprint)
        outside = start[smem.addr_width :].any() | (self._end > smem.size_bytes)
        # A fill takes no bytes from shared memory, but as many as fit there at most: counters are not wider.
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
            for spatial, bits in enumerate((16, 8, 5), 1):  # as there are one, two or three spatial dimensions
                with m.Case(spatial + 2):
                    m.d.comb += [allowed[k].eq((1 << bits) - 1) for k in range(spatial)]
        too_far = Cat(command.offsets[k] & ~allowed[k] for k in range(3)).any()
        impossible = (command.opcode == Opcode.REDUCE) & no_reduction(command.reduction, checked.element)
        return [
            (Error.OFFSETS, _field("offsets"), too_far),
            (Error.REDUCTION, _field("reduction"), impossible),
        ]

    def _window_rules(self):
        command, checked, windows = self.i.command, self.i.checked, self.windows
        width = self.params.smem.addr_width
        smem, barrier = command.smem[:width], command.barrier[:width]
        leaves = outside_global(windows, checked.address, Cat(checked.last, checked.beyond))
        cluster = []
        if self.params.cores > 1:
            cluster += [(ClusterError.CORES, 0, self._loads & unnameable(self.params, windows, command))]
        return [
            (Error.WINDOW, DESCRIPTOR.index("address"), leaves),
            (Error.WINDOW, _field("smem"), self._shared & reaches_out(windows, smem, self._end)),
            (Error.WINDOW, _field("barrier"), self._signals & outside_shared(windows, barrier, barrier)),
            *cluster,
        ]


def _field(name):
    return COMMAND_FIELD + COMMAND.index(name)
