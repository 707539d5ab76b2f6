"""Control and status registers, made from a register table."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.registers import Access

from ..lib.choice import chosen
from ..lib.formats import packed_layout
from .axi4_lite import AccessSignature
from .counters import Counters, IncrementsLayout

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """Registers of a table behind a stream of accesses.

    One access a cycle, answered one cycle later; a read of a counter is accepted after up to ``len(counted)`` cycles.
    Refused with an error, without effect, are accesses to offsets of no register and writes to registers that cannot be
    written. A byte whose strobe is zero is not written.

    Parameters
    ----------
    table : sequence of Register
        Offsets and names are unique.
    counted : dict of str to int
        Of read-only registers that are counters, or of none, by name: bits of what is added in a cycle.

    Members
    -------
    accesses : In(AccessSignature)
        Registered.
    more : In(IncrementsLayout) if counted
        What is added to each counter in this cycle: :class:`Counters`.
    clear_counters : In(1) if counted
        Strobe: all become zero.
    *name of another read-only register* : In(its fields)
        Sampled when it is read.
    *name of a read-write register* : Out(its fields)
        What was written.
    *name of a strobe register* : Out(its fields)
        Ones that were written, for one cycle.
    *name of a write-1-to-clear register* : Out(its fields)
        The bits that are set.
    *name of one, and _set* : In(its fields)
        Sets bits of a write-1-to-clear register; wins over a clear in the same cycle.
    """

    def __init__(self, table, counted=()):
        self._table = tuple(table)
        self._counters = Counters(counted) if counted else None
        self._counted = list(counted)
        for what in ("offset", "name"):
            values = [getattr(register, what) for register in self._table]
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                raise ValueError(f"two registers have the {what} {twice!r}")
        members = {
            "accesses": In(AccessSignature()),
        }
        if counted:
            members |= {"more": In(IncrementsLayout(counted)), "clear_counters": In(1)}
        for register in self._table:
            layout = packed_layout(register.format)
            if register.name in self._counted:
                continue
            if register.access is Access.RO:
                members[register.name] = In(layout)
            elif register.access is not Access.CONSTANT:
                members[register.name] = Out(layout, init=layout.from_bits(register.reset))
            if register.access is Access.W1C:
                members[f"{register.name}_set"] = In(layout)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        access, answer = requests.payload, answers.payload
        accept, write = Signal(), Signal()
        found = self._count(m) if self._counted else Const(1)
        m.d.comb += [
            requests.ready.eq((~answers.valid | answers.ready) & found),
            accept.eq(requests.valid & requests.ready),
            write.eq(accept & access.write),
        ]

        known, writable = Signal(), Signal()
        with m.Switch(access.address[2:]):
            for register in self._table:
                with m.Case(register.offset >> 2):
                    m.d.comb += [known.eq(1), writable.eq(register.access not in (Access.CONSTANT, Access.RO))]
        # Chosen by the bits of the offset that tell registers apart; what has another address is reset below.
        offsets = {register.offset >> 2: self._value(register) for register in self._table}
        value = chosen(access.address[2 : 2 + max(offsets).bit_length()], offsets)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(requests.ready):
            m.d.sync += [answer.data.eq(Mux(known, value, 0)), answer.error.eq(~known | (access.write & ~writable))]
        with m.If(accept):
            m.d.sync += answers.valid.eq(1)

        for register in self._table:
            here = Signal(name=f"writes_{register.name}")
            m.d.comb += here.eq(write & (access.address[2:] == register.offset >> 2))
            if register.access is Access.RW:
                self._keep(m, register, here)
            else:
                mask = Cat(bit.replicate(8) for bit in access.strobe)
                self._update(m, register, mask & here.replicate(32) & _field_mask(register), access.data)
        return m

    def _count(self, m):
        """The counters; whether the access at the input waits for none of them."""
        m.submodules.counters = counters = self._counters
        requests = self.accesses.requests
        access, here = requests.payload, Signal()
        for register in self._table:
            if register.name in self._counted:
                with m.If(access.address[2:] == register.offset >> 2):
                    m.d.comb += [counters.which.eq(self._counted.index(register.name)), here.eq(~access.write)]
        m.d.comb += [
            counters.more.eq(self.more),
            counters.clear.eq(self.clear_counters),
            counters.asked.eq(requests.valid & here),
        ]
        return ~here | counters.told

    def _value(self, register):
        """What a read of ``register`` gives."""
        if register.name in self._counted:
            return self._counters.value
        if register.access is Access.CONSTANT:
            return Const(register.reset, 32)
        if register.access is Access.WO:
            return Const(0, 32)
        return getattr(self, register.name).as_value() & _field_mask(register)

    def _keep(self, m, register, here):
        """Registers of a read-write ``register``; each byte has a clock enable, and a bit nothing else."""
        access, bits = self.accesses.requests.payload, getattr(self, register.name).as_value()
        for byte in range(4):
            fields = [bit for bit in range(8 * byte, 8 * byte + 8) if _field_mask(register) >> bit & 1]
            with m.If(here & access.strobe[byte]):
                m.d.sync += [bits[bit].eq(access.data[bit]) for bit in fields]

    def _update(self, m, register, written, data):
        """Registers of another ``register``, of which the bits ``written`` are written with ``data``."""
        if register.access in (Access.CONSTANT, Access.RO):
            return
        bits = getattr(self, register.name).as_value()
        if register.access is Access.WO:
            m.d.sync += bits.eq(data & written)
        else:
            set_bits = getattr(self, f"{register.name}_set").as_value() & _field_mask(register)
            m.d.sync += bits.eq((bits & ~(data & written)) | set_bits)


def _field_mask(register):
    """Ones where a bit belongs to a field."""
    return 0xFFFF_FFFF ^ register.format.reserved_mask
