"""Control and status registers made from a register table, and what the control blocks of all engines share."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from tilewright.spec.registers import Access

from ..lib.component import Port
from ..lib.layouts import packed_layout
from ..lib.logic import mux_tree
from .axi4_lite import AccessSignature

__all__ = [
    "LINE_LOG2",
    "PAGE_LOG2",
    "Counters",
    "EngineStateSignature",
    "ErrorRecord",
    "IncrementsLayout",
    "RegisterFile",
    "connect_counters",
    "connect_status",
    "show_parameters",
    "widths_of",
    "window_units",
]

#: Log2 of the bytes of a unit of windows, of global memory and of shared memory.
PAGE_LOG2, LINE_LOG2 = 12, 7

_COUNTER_BITS = 32


def window_units(base, limit, low, high):
    """First and last unit of 2^``low`` bytes of a window in a memory of 2^``high`` bytes.

    A window that begins beyond the memory is empty.

    Parameters
    ----------
    base, limit : Value
        Byte addresses of its first and its last byte; low bits are ignored.
    """
    ones = (1 << high - low) - 1
    beyond, through = base[high:].any(), limit[high:].any()
    return Mux(beyond, ones, base[low:high]), Mux(beyond, 0, Mux(through, ones, limit[low:high]))


def widths_of(counted):
    """Bits of the values that are added to each counter, by name, for :class:`Counters`."""
    return {name: len(Value.cast(value)) for name, value in counted.items()}


class IncrementsLayout(data.StructLayout):
    """What is added to each counter in a cycle."""

    def __init__(self, counted):
        super().__init__({name: unsigned(width) for name, width in counted.items()})


class Counters(wiring.Component):
    """Counters of 32 bits, modulo 2^32, that share a memory and an adder.

    The numbers are in a memory. What is to be added to one waits in a few bits until its turn, once in
    ``len(counted)`` cycles. A number is read in its turn: 1 to ``len(counted)`` cycles after the request. It includes
    all that was added two cycles before the request or earlier.

    Parameters
    ----------
    counted : dict of str to int
        Bits of what is added to each counter in a cycle. At least two counters: the turn of a single one would follow
        before its number is written.
    """

    def __init__(self, counted):
        count = len(counted)
        if count < 2:
            raise ValueError(f"there must be two counters at least, not {count}")
        self.turn = Signal(range(count))  # the counter that is updated
        self.zeros = Signal(range(count + 1), init=count)  # turns that read zero, whatever the memory holds
        self.waiting = {
            name: Signal(bits_for(count * ((1 << width) - 1)), name=f"{name}_waiting")
            for name, width in counted.items()
        }
        super().__init__(
            {
                "increments": In(IncrementsLayout(counted)),
                "clear": In(1),  # strobe: all become zero; increments of earlier cycles are dropped
                "request": In(1),  # until ``done``: read the counter with this index in ``counted``
                "index": In(range(count)),
                "done": Out(1),  # a register: ``value`` is the number in this cycle
                "value": Out(_COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, turn, zeros = len(self.waiting), self.turn, self.zeros
        m.submodules.numbers = numbers = Memory(shape=_COUNTER_BITS, depth=count, init=[])
        read, write = numbers.read_port(domain="comb"), numbers.write_port()

        m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
        for number, (name, waiting) in enumerate(self.waiting.items()):
            # Strobes come from all over the engine, so each ends at a register.
            increment = Signal.like(self.increments[name], name=f"{name}_increment")
            m.d.sync += [increment.eq(self.increments[name]), waiting.eq(Mux(turn == number, 0, waiting) + increment)]
            with m.If(self.clear):
                m.d.sync += waiting.eq(0)
        # After a clear, as after a reset, each number is zero at its next turn.
        with m.If(self.clear):
            m.d.sync += zeros.eq(count)
        with m.Elif(zeros != 0):
            m.d.sync += zeros.eq(zeros - 1)

        number, sum_ = Signal(_COUNTER_BITS), Signal(max(map(len, self.waiting.values())))
        entry = Signal.like(turn)
        m.d.sync += [
            number.eq(Mux(zeros != 0, 0, read.data)),
            sum_.eq(mux_tree(turn, dict(enumerate(self.waiting.values())))),
            entry.eq(turn),
            self.done.eq(self.request & (self.index == turn)),
        ]
        m.d.comb += [
            read.addr.eq(turn),
            self.value.eq(number + sum_),
            write.addr.eq(entry),
            write.data.eq(self.value),
            write.en.eq(1),
        ]
        return m


class RegisterFile(wiring.Component):
    """Registers of a table, behind a stream of accesses.

    One access a cycle, answered one cycle later; a read of a counter is accepted after up to ``len(counted)`` cycles.
    Accesses to offsets without a register and writes to read-only registers are refused: they have no effect and
    are answered with an error. A byte whose strobe is zero is not written.

    Members are named after the registers. Read-only registers are inputs, sampled when they are read. Read-write
    registers are outputs. Strobe registers are outputs that show the ones that were written for one cycle.
    Write-1-to-clear registers are outputs, with an input ``<name>_set`` that sets bits and wins over a clear.

    Parameters
    ----------
    table : sequence of Register
        Offsets and names are unique.
    counted : dict of str to int
        Read-only registers that are counters, if there are any: bits of what is added in a cycle, by name.
    """

    def __init__(self, table, counted=()):
        self._table = tuple(table)
        self._counters = Counters(counted) if counted else None
        self._counted = list(counted)
        for attribute in ("offset", "name"):
            values = [getattr(register, attribute) for register in self._table]
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                raise ValueError(f"two registers have the {attribute} {twice!r}")
        members = {"accesses": In(AccessSignature())}
        if counted:
            members |= {"increments": In(IncrementsLayout(counted)), "clear_counters": In(1)}  # see Counters
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
        word, accept = access.address[2:], Signal()
        available = self._count(m) if self._counted else Const(1)
        m.d.comb += [
            requests.ready.eq((~answers.valid | answers.ready) & available),
            accept.eq(requests.valid & requests.ready),
        ]

        known, writable = Signal(), Signal()
        with m.Switch(word):
            for register in self._table:
                with m.Case(register.offset >> 2):
                    m.d.comb += [known.eq(1), writable.eq(register.access not in (Access.CONSTANT, Access.RO))]
        # Selected by the offset bits that differ between registers; other addresses are masked by ``known``.
        offsets = {register.offset >> 2: self._value(register) for register in self._table}
        value = mux_tree(word[: max(offsets).bit_length()], offsets)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(requests.ready):
            m.d.sync += [answer.data.eq(Mux(known, value, 0)), answer.error.eq(~known | (access.write & ~writable))]
        with m.If(accept):
            m.d.sync += answers.valid.eq(1)

        for register in self._table:
            write = Signal(name=f"writes_{register.name}")
            m.d.comb += write.eq(accept & access.write & (word == register.offset >> 2))
            self._update(m, register, write)
        return m

    def _count(self, m):
        """The counters; whether the access at the input waits for none of them."""
        m.submodules.counters = counters = self._counters
        requests = self.accesses.requests
        access, selected = requests.payload, Signal()
        for register in self._table:
            if register.name in self._counted:
                with m.If(access.address[2:] == register.offset >> 2):
                    m.d.comb += [counters.index.eq(self._counted.index(register.name)), selected.eq(~access.write)]
        m.d.comb += [
            counters.increments.eq(self.increments),
            counters.clear.eq(self.clear_counters),
            counters.request.eq(requests.valid & selected),
        ]
        return ~selected | counters.done

    def _value(self, register):
        """What a read of ``register`` returns."""
        if register.name in self._counted:
            return self._counters.value
        if register.access is Access.CONSTANT:
            return Const(register.reset, 32)
        if register.access is Access.WO:
            return Const(0, 32)
        return getattr(self, register.name).as_value() & _field_mask(register)

    def _update(self, m, register, write):
        """Updates the bits of ``register``, which is written in this cycle if ``write``."""
        if register.access in (Access.CONSTANT, Access.RO):
            return
        access, bits = self.accesses.requests.payload, getattr(self, register.name).as_value()
        fields = _field_mask(register)
        if register.access is Access.RW:  # each byte has a clock enable
            for byte in range(4):
                with m.If(write & access.strobe[byte]):
                    m.d.sync += [bits[k].eq(access.data[k]) for k in range(8 * byte, 8 * byte + 8) if fields >> k & 1]
            return
        strobe = Cat(bit.replicate(8) for bit in access.strobe)
        ones = access.data & strobe & write.replicate(32) & fields
        if register.access is Access.WO:
            m.d.sync += bits.eq(ones)
        else:
            m.d.sync += bits.eq((bits & ~ones) | (getattr(self, f"{register.name}_set").as_value() & fields))


def _field_mask(register):
    """Ones where a bit belongs to a field."""
    return 0xFFFF_FFFF ^ register.format.reserved_mask


class EngineStateSignature(Port):
    """What a command processor knows of an engine, as the engine sees it."""

    def __init__(self):
        super().__init__(
            {
                "idle": Out(1),  # all work has ended
                "failed": Out(1),  # the error record holds an error
                "tag": Out(16),  # of the error record; 0 if it has none
                "clear_error": In(1),  # strobe: clear the record, as the bit of the control register does
            }
        )


class ErrorRecord(wiring.Component):
    """Stores the first error and counts all, from one clear to the next. A clear drops the errors of earlier cycles.

    Parameters
    ----------
    shape : Layout
        Of a record, whose ``code`` is zero without an error.
    count_width : int
        Bits of the count, which saturates.
    """

    def __init__(self, shape, count_width=32):
        super().__init__(
            {
                "errors": In(2),  # errors of this cycle
                "record": In(shape),  # of the first of them
                "before": In(1),  # it also precedes the first error
                "clear": In(1),
                "first": Out(shape),  # a register; zero without an error
                "count": Out(count_width),  # a register
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, low = Signal.like(self.count), len(self.errors)
        m.d.comb += count.eq(Mux(self.clear, 0, self.count))
        # Unless all upper bits are ones, the sum fits: only the low bits saturate.
        total, full = Signal(low + 1), count[low:].all()
        m.d.comb += total.eq(count[:low] + self.errors)
        m.d.sync += self.count.eq(
            Cat(total[:low] | (full & total[low]).replicate(low), count[low:] + (total[low] & ~full))
        )
        with m.If((self.errors != 0) & (self.clear | (self.first.code == 0) | self.before)):
            m.d.sync += self.first.eq(self.record)
        with m.Elif(self.clear):
            m.d.sync += self.first.eq(0)
        return m


def connect_status(m, registers, errors, counted, clear_error=0):
    """Connects an error record and counters.

    Parameters
    ----------
    m : Module
    registers : RegisterFile
        With ``control.clear_error`` and ``.clear_counters``, ``status.error``, ``error_count``, ``irq_status``,
        ``irq_enable`` and counters.
    errors : ErrorRecord
    counted : dict of str to Value
        What is added to each counter in each cycle, by name; the register file has been made for them.
    clear_error : Value
        Another strobe that clears the record.

    Returns
    -------
    Value
        The interrupt: an enabled status bit is set.
    """
    m.d.comb += [
        errors.clear.eq(registers.control.clear_error | clear_error),
        registers.irq_status_set.error.eq(errors.errors != 0),
        registers.status.error.eq(errors.first.code != 0),
        registers.error_count.count.eq(errors.count),
    ]
    connect_counters(m, registers, counted)
    return (registers.irq_status.as_value() & registers.irq_enable.as_value()).any()


def connect_counters(m, registers, counted):
    """Connects counters alone, as :func:`connect_status` does."""
    m.d.comb += [
        registers.clear_counters.eq(registers.control.clear_counters),
        *(registers.increments[name].eq(value) for name, value in counted.items()),
    ]


def show_parameters(m, registers, values):
    """Connects constants to read-only registers: by name of the register, values by name of the field."""
    for name, fields in values.items():
        m.d.comb += [getattr(registers, name)[field].eq(value) for field, value in fields.items()]
