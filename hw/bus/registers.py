"""Windows of memory, as registers hold them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from tilewright.spec.registers import Access

from ..lib.component import Port
from ..lib.layouts import packed_layout
from ..lib.logic import chosen
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
]  # fmt: skip

#: Log2 of the bytes that windows of global memory consist of, and those of shared memory.
PAGE_LOG2, LINE_LOG2 = 12, 7


def window_units(base, limit, low, high):
    """First and last unit of 2^``low`` bytes of a window in a memory of 2^``high`` bytes.

    A window that begins behind the memory holds nothing.

    Parameters
    ----------
    base, limit : Value
        Byte addresses of its first and its last byte; low bits are ignored.
    """
    ones = (1 << high - low) - 1
    behind, through = base[high:].any(), limit[high:].any()
    return Mux(behind, ones, base[low:high]), Mux(behind, 0, Mux(through, ones, limit[low:high]))


_BITS = 32


def widths_of(counted):
    """Bits of what is added to each counter, by name, for :class:`Counters`; of the values themselves."""
    return {name: len(Value.cast(value)) for name, value in counted.items()}


class IncrementsLayout(data.StructLayout):
    """What is added to each counter in a cycle, of so many bits each."""

    def __init__(self, counted):
        super().__init__({name: unsigned(width) for name, width in counted.items()})


class Counters(wiring.Component):
    """Counters of 32 bits, modulo 2^32.

    The numbers lie in a memory. What is to be added to one waits in a few bits of its own until its turn, which comes
    every ``len(counted)`` cycles. So a number is told when it has had its turn.

    Latency: 1 to ``len(counted)`` cycles. What was added two cycles before a number is asked for is in it.

    Parameters
    ----------
    counted : dict of str to int
        Bits of what is added to each counter in a cycle. Two counters at least: of one, a turn would follow another
        before its number is written.

    Members
    -------
    more : In(IncrementsLayout)
        What is added in this cycle.
    clear : In(1)
        Strobe: all become zero; what was added before its cycle is dropped.
    asked : In(1)
        A number is wanted; it stays until ``told``.
    which : In(range(len(counted)))
        Of which counter, in the order of ``counted``.
    told : Out(1)
        Registered. For one cycle ``value`` is that number; if it is still asked for, it is told again.
    value : Out(32)

    Attributes
    ----------
    turn : Signal
        Whose turn it is; for proofs.
    zeros : Signal
        So many turns from now on find zero, whatever the memory holds; for proofs.
    waiting : dict of str to Signal
        What is to be added to each counter at its turn; for proofs.
    """

    def __init__(self, counted):
        count = len(counted)
        if count < 2:
            raise ValueError(f"there must be two counters at least, not {count}")
        self.turn, self.zeros = Signal(range(count)), Signal(range(count + 1), init=count)
        self.waiting = {
            name: Signal(bits_for(count * ((1 << width) - 1)), name=f"{name}_waiting")
            for name, width in counted.items()
        }
        super().__init__(
            {
                "more": In(IncrementsLayout(counted)),
                "clear": In(1),
                "asked": In(1),
                "which": In(range(len(counted))),
                "told": Out(1),
                "value": Out(_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, turn, zeros = len(self.waiting), self.turn, self.zeros
        m.submodules.numbers = numbers = Memory(shape=_BITS, depth=count, init=[])
        read, write = numbers.read_port(domain="comb"), numbers.write_port()

        m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
        for number, (name, waiting) in enumerate(self.waiting.items()):
            # Strobes come from all over the engine: no path goes on from there.
            more = Signal.like(self.more[name], name=f"{name}_more")
            m.d.sync += [more.eq(self.more[name]), waiting.eq(Mux(turn == number, 0, waiting) + more)]
            with m.If(self.clear):
                m.d.sync += waiting.eq(0)
        # After a clear, as after a reset, each number is zero at its next turn.
        with m.If(self.clear):
            m.d.sync += zeros.eq(count)
        with m.Elif(zeros != 0):
            m.d.sync += zeros.eq(zeros - 1)

        old, more, place = Signal(_BITS), Signal(max(map(len, self.waiting.values()))), Signal.like(turn)
        m.d.sync += [
            old.eq(Mux(zeros != 0, 0, read.data)),
            more.eq(chosen(turn, dict(enumerate(self.waiting.values())))),
            place.eq(turn),
            self.told.eq(self.asked & (self.which == turn)),
        ]
        m.d.comb += [
            read.addr.eq(turn),
            self.value.eq(old + more),
            write.addr.eq(place),
            write.data.eq(self.value),
            write.en.eq(1),
        ]
        return m


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


class EngineStateSignature(Port):
    """What a command processor knows of an engine, as the engine sees it.

    Members
    -------
    idle : Out(1)
        All that it was handed has ended.
    failed : Out(1)
        Its record holds an error.
    tag : Out(16)
        The record's tag; 0 if it has none.
    clear_error : In(1)
        Strobe: forget the record, as the register's bit does.
    """

    def __init__(self):
        super().__init__({"idle": Out(1), "failed": Out(1), "tag": Out(16), "clear_error": In(1)})


class ErrorRecord(wiring.Component):
    """Keeps the first error and counts all, from one clear to the next. A clear drops what was before its own cycle.

    Parameters
    ----------
    shape : Layout
        Of a record; ``code`` of it is zero if there is no error.
    count_width : int
        Bits of the count, which stays at its largest value.

    Members
    -------
    errors : In(2)
        Errors of this cycle.
    record : In(shape)
        The first one of them.
    before : In(1)
        It comes before the one that is kept, too.
    clear : In(1)
    kept : Out(shape)
        Registered; zero if there is none.
    count : Out(count_width)
        Registered.
    """

    def __init__(self, shape, count_width=32):
        super().__init__(
            {
                "errors": In(2),
                "record": In(shape),
                "before": In(1),
                "clear": In(1),
                "kept": Out(shape),
                "count": Out(count_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, low = Signal.like(self.count), len(self.errors)
        m.d.comb += count.eq(Mux(self.clear, 0, self.count))
        # Unless all bits above are ones, the sum fits: so of few bits there is a choice behind it.
        total, full = Signal(low + 1), count[low:].all()
        m.d.comb += total.eq(count[:low] + self.errors)
        m.d.sync += self.count.eq(
            Cat(total[:low] | (full & total[low]).replicate(low), count[low:] + (total[low] & ~full))
        )
        with m.If((self.errors != 0) & (self.clear | (self.kept.code == 0) | self.before)):
            m.d.sync += self.kept.eq(self.record)
        with m.Elif(self.clear):
            m.d.sync += self.kept.eq(0)
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
        What is added in each cycle to each counter, by name; the register file has been made for them.
    clear_error : Value
        Another strobe that clears the record.

    Returns
    -------
    Value
        The interrupt: a status bit is set that is enabled.
    """
    m.d.comb += [
        errors.clear.eq(registers.control.clear_error | clear_error),
        registers.irq_status_set.error.eq(errors.errors != 0),
        registers.status.error.eq(errors.kept.code != 0),
        registers.error_count.count.eq(errors.count),
    ]
    connect_counters(m, registers, counted)
    return (registers.irq_status.as_value() & registers.irq_enable.as_value()).any()


def connect_counters(m, registers, counted):
    """Connects counters alone, as :func:`connect_status` does."""
    m.d.comb += [
        registers.clear_counters.eq(registers.control.clear_counters),
        *(registers.more[name].eq(value) for name, value in counted.items()),
    ]


def show_parameters(m, registers, values):
    """Shows values that never change in read-only registers: values of fields by name, by the register's name."""
    for name, fields in values.items():
        m.d.comb += [getattr(registers, name)[field].eq(value) for field, value in fields.items()]
