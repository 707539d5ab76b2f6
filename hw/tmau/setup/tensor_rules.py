"""The rules of a command on a descriptor, in hardware (docs/tmau.md, "Errors")."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, TENSOR_OPCODES, Error, Opcode

from ..descriptor.layouts import FaultLayout, LookupLayout
from ..layouts import WindowsLayout
from .rules import no_reduction, outside_global, outside_shared

__all__ = ["CommandRules"]


class CommandRules(wiring.Component):
    """Finds the first rule that a command breaks. Latency 1, one command a cycle.

    Members
    -------
    i : In(LookupLayout)
    coords : In(array of 5 signed(32))
        Its coordinates in the order of the walk.
    windows : In(WindowsLayout)
    load : In(1)
        Strobe: the command moves on.
    held : In(LookupLayout)
        The command that moved on last.
    fault : Out(FaultLayout)
        Of the command that is held: what was known, otherwise lowest code, then lowest field number, then lowest
        dimension. Code NONE if it can run, and for commands without a tensor.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "i": In(LookupLayout(params)),
                "coords": In(data.ArrayLayout(signed(32), 5)),
                "windows": In(WindowsLayout(params)),
                "load": In(1),
                "held": In(LookupLayout(params)),
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
        with m.If(self.load):
            m.d.sync += broken.eq(Mux(on_tensor, Cat(condition for _, _, condition in rules), 0))

        m.d.comb += lowest.eq(broken & -broken)
        with m.If(self.held.fault.code != Error.NONE):
            m.d.comb += self.fault.eq(self.held.fault)
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
        rules = [
            (Error.CORNER, DESCRIPTOR.index("lower"), bad_corner & ~corner.upper),
            (Error.CORNER, DESCRIPTOR.index("upper"), bad_corner & corner.upper),
        ]
        for d in range(5):
            coord = self.i.command.coords[d]
            wrong = Mux(checked.rank > d, self._writes & (coord < 0), coord.any())
            rules.append((Error.COORDS, _field("coords"), wrong))
        for k in range(3):  # W is dimension 0 with interleave, and otherwise 1
            coord = self.coords[k + 1]
            outside = (coord < checked.lows[k]) | (coord >= checked.highs[k])
            rules.append((Error.START, _field("coords"), checked.im2col & outside))
        return rules

    def _shared_rules(self, m):
        command, checked, smem = self.i.command, self.i.checked, self.params.smem
        # A fill takes no bytes from shared memory, but as many as fit there at most: counters are not wider.
        start = Mux(self._shared, command.smem, 0)
        self._end = Signal(smem.addr_width + 2)
        m.d.comb += self._end.eq(start[: smem.addr_width] + checked.footprint)
        too_far = start[smem.addr_width :].any() | checked.too_large | (self._end > smem.size_bytes)
        barrier = command.barrier
        return [
            (Error.SMEM_ALIGNMENT, _field("smem"), start[:7].any()),
            (Error.SMEM_RANGE, _field("smem"), (self._loads | self._writes) & too_far),
            (Error.BARRIER_ALIGNMENT, _field("barrier"), self._signals & barrier[:3].any()),
            (Error.BARRIER_RANGE, _field("barrier"), self._signals & barrier[smem.addr_width :].any()),
        ]

    def _other_rules(self, m):
        command, checked = self.i.command, self.i.checked
        rules = []
        for k in range(3):
            # 16, 8 or 5 bits, as there are one, two or three spatial dimensions.
            allowed = Signal(16, name=f"allowed{k}")
            with m.If(checked.im2col & ~self._writes), m.Switch(checked.rank):
                for spatial, bits in enumerate((16, 8, 5), 1):
                    with m.Case(spatial + 2):
                        m.d.comb += allowed.eq((1 << bits) - 1 if k < spatial else 0)
            wrong = (command.offsets[k] & ~allowed).any()
            rules.append((Error.OFFSETS, _field("offsets"), wrong))
        impossible = (command.opcode == Opcode.REDUCE) & no_reduction(command.reduction, checked.element)
        rules.append((Error.REDUCTION, _field("reduction"), impossible))
        return rules

    def _window_rules(self):
        command, checked, windows = self.i.command, self.i.checked, self.windows
        width = self.params.smem.addr_width
        smem, barrier = command.smem[:width], command.barrier[:width]
        leaves = outside_global(windows, checked.address, Cat(checked.last, checked.beyond))
        return [
            (Error.WINDOW, DESCRIPTOR.index("address"), leaves),
            (Error.WINDOW, _field("smem"), self._shared & outside_shared(windows, smem, self._end - 1)),
            (Error.WINDOW, _field("barrier"), self._signals & outside_shared(windows, barrier, barrier)),
        ]


def _field(name):
    return COMMAND_FIELD + COMMAND.index(name)
