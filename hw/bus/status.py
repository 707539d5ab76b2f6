"""What the control blocks of all engines have in common: error record, interrupt, performance counters."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.join import Port

__all__ = ["EngineStateSignature", "ErrorRecord", "connect_counters", "connect_status", "show_parameters"]


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
