"""The TMAU as a processor sees it over registers: parameters, status, error record, interrupt, performance counters."""

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
    """Registers that show the parameters of the hardware: values of their fields, by their names."""
    return {
        "params0": {
            "bus_bytes": params.bus_bytes,
            "addr_width": params.addr_width,
            "queue_depth": params.queue_depth,
            "cache_entries": params.cache_entries,
        },
        "params1": {
            "max_outstanding": params.max_outstanding,
            "commands_in_flight": params.commands_in_flight,
        },
        "params2": {"smem_bytes": params.smem.size_bytes},
        "features": {name: name in params.features for name in FEATURES}
        | {name: getattr(params, name) for name in HOST_WINDOWS},
    }


class Control(wiring.Component):
    """Registers of ``spec.tmau_registers``, fed by the data path's events. Without the feature ``windows`` those
    of ``WINDOW_REGISTERS`` are not there; in a cluster there are those of ``CLUSTER_REGISTERS`` too, and those of
    ``processor_registers`` where there are several.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                # Registers, by byte offset; see ``RegisterFile``.
                "accesses": In(AccessSignature()),
                "datapath": In(ControlSignature(params)),
                "state": Out(EngineStateSignature()),
                # Level: a status bit is set that is enabled.
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        confines = self.params.has("windows")
        table = [register for register in TMAU_REGISTERS if confines or register.name not in WINDOW_REGISTERS]
        in_cluster = self.params.cores > 1
        table += CLUSTER_REGISTERS if in_cluster else ()
        table += processor_registers(self.params.processors, confines)
        datapath = self.datapath
        done, events = datapath.done, datapath.events
        failed = done.valid & (done.record.code != Error.NONE)
        completed = done.valid & (done.record.code == Error.NONE)
        counted = {
            "busy_cycles": ~datapath.idle,
            "commands": events.command,
            "requests": events.request,
            "beats": events.beat,
            "bytes": Mux(completed & ~done.stored, done.bytes, 0),
            "stall_credit": events.stall_credit,
            "stall_ar": events.stall_ar,
            "stall_data": events.stall_data,
            "stall_smem": events.stall_smem,
            "descriptor_hits": events.descriptor_hit,
            "descriptor_misses": events.descriptor_miss,
            "bank_conflicts": events.bank_conflict,
            "write_requests": events.write_request,
            "write_beats": events.write_beat,
            "write_bytes": Mux(completed & done.stored, done.bytes, 0),
        }
        if in_cluster:
            counted["bytes_received"] = datapath.delivery.received
        m.submodules.registers = registers = RegisterFile(table, widths_of(counted))
        connect(m, flipped(self.accesses), registers.accesses)

        show_parameters(m, registers, built_with(self.params))
        m.d.comb += [
            registers.status.idle.eq(datapath.idle),
            registers.status.queue_level.eq(datapath.queue_level),
            registers.irq_status_set.done.eq(completed),
            datapath.invalidate_descriptors.eq(registers.control.invalidate_descriptors),
        ]
        errors = self._record_errors(m, registers, failed)
        if self.params.processors > 1:
            m.d.comb += registers.processors.count.eq(self.params.processors)
        if confines:
            self._show_windows(m, registers)
        if in_cluster:
            self._show_cluster(m, registers)
        m.d.comb += [
            self.state.idle.eq(datapath.idle),
            self.state.failed.eq(errors.kept.code != 0),
            self.state.tag.eq(errors.kept.tag),
        ]
        m.d.comb += self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error))
        return m

    def _record_errors(self, m, registers, failed):
        """Of errors in the same cycle the command's is the first, and a barrier's the last."""
        datapath = self.datapath
        record, refused = datapath.done.record, datapath.refused
        m.submodules.errors = errors = ErrorRecord(ErrorLayout(self.params))
        m.d.comb += [errors.errors.eq(failed + refused.valid), errors.record.eq(record)]
        with m.If(~failed):
            m.d.comb += [
                errors.record.code.eq(Error.BARRIER_OPERATION),
                errors.record.tag.eq(0),
                errors.record.field.eq(0),
                errors.record.address.eq(refused.address),
            ]
        if self.params.cores > 1:
            refusal = datapath.delivery.refusal
            m.d.comb += errors.errors.eq(failed + refused.valid + refusal.valid)
            with m.If(~failed & refusal.valid):
                m.d.comb += [
                    errors.record.code.eq(Error.WINDOW),
                    errors.record.tag.eq(refusal.tag),
                    errors.record.field.eq(refusal.field),
                    errors.record.address.eq(0),
                ]
        m.d.comb += [
            registers.error.code.eq(errors.kept.code),
            registers.error.field.eq(errors.kept.field),
            registers.error.tag.eq(errors.kept.tag),
            registers.error_address_lo.address.eq(errors.kept.address[:32]),
            registers.error_address_hi.address.eq(errors.kept.address[32:]),
        ]
        return errors

    def _show_cluster(self, m, registers):
        """Which core this is, and the masks of cores, a cycle later."""
        delivery, isolation = self.datapath.delivery, registers.isolation
        m.d.comb += [registers.core.number.eq(delivery.number), registers.core.cores.eq(self.params.cores)]
        m.d.sync += [delivery.accepts.eq(isolation.accepts), delivery.stop.eq(registers.stop.stop)]
        for windows in self._every_windows():
            m.d.sync += [
                windows.own.eq(1 << delivery.number),
                windows.allowed.eq(isolation.reach | (1 << delivery.number)),
            ]

    def _every_windows(self):
        """The unit's windows, and those of each processor that has its own."""
        datapath = self.datapath
        apart = self.params.confines_apart
        return [
            datapath.windows,
            *(datapath.processor_windows[n] for n in range(self.params.processors if apart else 0)),
        ]

    def _show_windows(self, m, registers):
        """Windows in pages and lines that exist, a cycle later: one that begins behind the memory holds nothing.

        Those of processors two cycles later.
        """
        unit, *others = self._every_windows()
        m.d.sync += [unit[name].eq(value) for name, value in self._units(registers, "").items()]
        for number, windows in enumerate(others):
            own = Signal.like(unit, name=f"own_{number}")
            m.d.sync += [own[name].eq(value) for name, value in self._units(registers, f"_{number}").items()]
            self._confine_both(m, windows, own, unit)

    @staticmethod
    def _confine_both(m, windows, own, unit):
        """What lies in the windows of a processor and in those of the unit, a cycle later."""
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

    def _units(self, registers, end):
        """Members of ``WindowsLayout`` by name, as the registers have them whose names have this end."""

        def register(name):
            return getattr(registers, name + end)

        confine = register("windows")
        base, limit = (
            Cat(register(f"global_{edge}_{half}").address for half in ("lo", "hi")) for edge in ("base", "limit")
        )
        first, last = window_units(base, limit, PAGE_LOG2, self.params.addr_width)
        shared = (register("shared_base").address, register("shared_limit").address)
        shared_first, shared_last = window_units(*shared, LINE_LOG2, self.params.smem.addr_width)
        return {
            "confine_global": confine.confine_global,
            "confine_shared": confine.confine_shared,
            "global_first": first,
            "global_last": last,
            "shared_first": shared_first,
            "shared_last": shared_last,
        }
