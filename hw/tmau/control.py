"""Registers of the TMAU: parameters, status, error record, interrupt, performance counters, windows."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import Error
from tilewright.spec.cluster import CLUSTER_REGISTERS
from tilewright.spec.tmau_registers import FEATURES, HOST_WINDOWS, TMAU_REGISTERS, WINDOW_REGISTERS, processor_registers

from ..bus.axi4_lite import AccessSignature
from ..bus.registers import (
    LINE_LOG2,
    PAGE_LOG2,
    EngineStateSignature,
    ErrorRecord,
    RegisterFile,
    connect_status,
    show_parameters,
    widths_of,
    window_units,
)
from .layouts import ErrorLayout
from .signatures import ControlSignature

__all__ = ["Control", "built_with"]


def built_with(params):
    """Values of the registers that show the parameters: a dictionary of fields by register."""
    return {
        "params0": {
            "bus_bytes": params.bus_bytes,
            "addr_width": params.addr_width,
            "queue_depth": params.queue_depth,
            "cache_entries": params.cache_entries,
        },
        "params1": {"max_outstanding": params.max_outstanding, "commands_in_flight": params.commands_in_flight},
        "params2": {"smem_bytes": params.smem.size_bytes},
        "features": {name: name in params.features for name in FEATURES}
        | {name: getattr(params, name) for name in HOST_WINDOWS},
    }


#: Counters of events, with the events that they count.
_COUNTERS = {
    "commands": "command",
    "requests": "request",
    "beats": "beat",
    "descriptor_hits": "descriptor_hit",
    "descriptor_misses": "descriptor_miss",
    "bank_conflicts": "bank_conflict",
    "write_requests": "write_request",
    "write_beats": "write_beat",
    **{name: name for name in ("stall_credit", "stall_ar", "stall_data", "stall_smem")},
}


class Control(wiring.Component):
    """Registers of ``spec.tmau_registers``, driven by the events of the data path.

    Without the feature ``windows`` the ``WINDOW_REGISTERS`` are missing. A cluster adds the ``CLUSTER_REGISTERS``,
    several processors add the ``processor_registers``.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),  # Registers, by byte offset; see ``RegisterFile``.
                "datapath": In(ControlSignature(params)),
                "state": Out(EngineStateSignature()),
                "irq": Out(1),  # Level: a status bit is set and enabled.
            }
        )

    def elaborate(self, platform):
        m = Module()
        confines = self._params.has("windows")
        table = [register for register in TMAU_REGISTERS if confines or register.name not in WINDOW_REGISTERS]
        in_cluster = self._params.cores > 1
        table += CLUSTER_REGISTERS if in_cluster else ()
        table += processor_registers(self._params.processors, confines)
        datapath = self.datapath
        done = datapath.done
        failed = done.valid & (done.record.code != Error.NONE)
        completed = done.valid & (done.record.code == Error.NONE)
        counted = {counter: datapath.events[event] for counter, event in _COUNTERS.items()} | {
            "busy_cycles": ~datapath.idle,
            "bytes": Mux(completed & ~done.stored, done.bytes, 0),
            "write_bytes": Mux(completed & done.stored, done.bytes, 0),
        }
        if in_cluster:
            counted["bytes_received"] = datapath.delivery.received
        m.submodules.registers = registers = RegisterFile(table, widths_of(counted))
        connect(m, flipped(self.accesses), registers.accesses)

        show_parameters(m, registers, built_with(self._params))
        m.d.comb += [
            registers.status.idle.eq(datapath.idle),
            registers.status.queue_level.eq(datapath.queue_level),
            registers.irq_status_set.done.eq(completed),
            datapath.invalidate_descriptors.eq(registers.control.invalidate_descriptors),
        ]
        errors = self._record_errors(m, registers, failed)
        if self._params.processors > 1:
            m.d.comb += registers.processors.count.eq(self._params.processors)
        if confines:
            self._show_windows(m, registers)
        if in_cluster:
            self._show_cluster(m, registers)
        m.d.comb += [
            self.state.idle.eq(datapath.idle),
            self.state.failed.eq(errors.first.code != 0),
            self.state.tag.eq(errors.first.tag),
            self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error)),
        ]
        return m

    def _record_errors(self, m, registers, failed):
        """Of errors in the same cycle the error of a command comes first, the error of a barrier last."""
        datapath = self.datapath
        refused = datapath.refused
        m.submodules.errors = errors = ErrorRecord(ErrorLayout(self._params))
        record = errors.record
        m.d.comb += [errors.errors.eq(failed + refused.valid), record.eq(datapath.done.record)]
        with m.If(~failed):
            m.d.comb += [
                record.code.eq(Error.BARRIER_OPERATION),
                record.tag.eq(0),
                record.field.eq(0),
                record.address.eq(refused.address),
            ]
        if self._params.cores > 1:
            refusal = datapath.delivery.refusal
            m.d.comb += errors.errors.eq(failed + refused.valid + refusal.valid)
            with m.If(~failed & refusal.valid):
                m.d.comb += [
                    record.code.eq(Error.WINDOW),
                    record.tag.eq(refusal.tag),
                    record.field.eq(refusal.field),
                    record.address.eq(0),
                ]
        first = errors.first
        m.d.comb += [
            *(registers.error[name].eq(first[name]) for name in ("code", "field", "tag")),
            registers.error_address_lo.address.eq(first.address[:32]),
            registers.error_address_hi.address.eq(first.address[32:]),
        ]
        return errors

    def _show_cluster(self, m, registers):
        """Shows the number of the core, and applies the masks of cores one cycle later."""
        delivery, isolation = self.datapath.delivery, registers.isolation
        m.d.comb += [registers.core.number.eq(delivery.number), registers.core.cores.eq(self._params.cores)]
        m.d.sync += [delivery.accepts.eq(isolation.accepts), delivery.stop.eq(registers.stop.stop)]
        for windows in self._all_windows():
            m.d.sync += [
                windows.own.eq(1 << delivery.number),
                windows.allowed.eq(isolation.reach | (1 << delivery.number)),
            ]

    def _all_windows(self):
        """The windows of the unit, and the windows of each processor if they have their own."""
        processors = self._params.processors if self._params.confines_apart else 0
        return [self.datapath.windows, *(self.datapath.processor_windows[number] for number in range(processors))]

    def _show_windows(self, m, registers):
        """Drives the windows in pages and lines, one cycle after the registers, for processors two cycles.

        A window that begins after the end of the memory is empty.
        """
        unit, *others = self._all_windows()
        m.d.sync += [unit[name].eq(value) for name, value in self._window(registers, "").items()]
        for number, windows in enumerate(others):
            own = Signal.like(unit, name=f"own_{number}")
            m.d.sync += [own[name].eq(value) for name, value in self._window(registers, f"_{number}").items()]
            self._intersect(m, windows, own, unit)

    @staticmethod
    def _intersect(m, windows, own, unit):
        """Intersects the windows of a processor with the windows of the unit, one cycle later."""
        for space in ("global", "shared"):
            confine, first, last = f"confine_{space}", f"{space}_first", f"{space}_last"
            m.d.sync += [
                windows[confine].eq(own[confine] | unit[confine]),
                windows[first].eq(unit[first]),
                windows[last].eq(unit[last]),
            ]
            with m.If(own[confine] & (~unit[confine] | (own[first] > unit[first]))):
                m.d.sync += windows[first].eq(own[first])
            with m.If(own[confine] & (~unit[confine] | (own[last] < unit[last]))):
                m.d.sync += windows[last].eq(own[last])

    def _window(self, registers, suffix):
        """Values of the members of ``WindowsLayout``, from the registers whose names end with ``suffix``."""

        def register(name):
            return getattr(registers, name + suffix)

        confine = register("windows")
        base, limit = (
            Cat(register(f"global_{edge}_{half}").address for half in ("lo", "hi")) for edge in ("base", "limit")
        )
        first, last = window_units(base, limit, PAGE_LOG2, self._params.addr_width)
        shared = (register("shared_base").address, register("shared_limit").address)
        shared_first, shared_last = window_units(*shared, LINE_LOG2, self._params.smem.addr_width)
        return {
            "confine_global": confine.confine_global,
            "confine_shared": confine.confine_shared,
            "global_first": first,
            "global_last": last,
            "shared_first": shared_first,
            "shared_last": shared_last,
        }
