"""The command processor: its stages, connected."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.conv import JOB
from tilewright.spec.core import Engine

from ...bus.axi4 import Axi4ReadSignature
from ...bus.axi4_lite import AccessSignature
from ...lib.layouts import command_layout
from ...lib.routing import StreamArbiter
from ...lib.stream import Slot
from ...pe.layouts import INSTRUCTION_BITS
from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ...smem.signatures import BarrierEventSignature
from .checks import RangeCheck, WordDecoder
from .control import ProgramControl, StopCause
from .dispatch import Dispatcher
from .fetch import InstructionStreamer, LineReader, ProgramFetcher
from .ports import BarrierCaller

__all__ = ["CommandProcessor"]

_ENGINES = len(Engine) - 1


class CommandProcessor(wiring.Component):
    """Runs programs in global memory; connections only.

    Parameters
    ----------
    params : CoreParams
        With ``program``.
    regions : dict of str to Region
        The regions that ``register_writes`` reaches.
    """

    def __init__(self, params, regions):
        self._params = params
        self._regions = regions
        smem = params.smem
        super().__init__(
            {
                # Its own registers, at the offsets of ``spec.core.registers``.
                "accesses": In(AccessSignature()),
                # To registers of engines.
                "register_writes": Out(AccessSignature()),
                # Reads of words and instructions, of ARID ``READER_ID``. RREADY is always high.
                "axi": Out(Axi4ReadSignature(params.tmau.addr_width, params.tmau.bus_width, 2)),
                "commands": Out(stream.Signature(command_layout())),
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                "barriers": Out(stream.Signature(BarrierRequestLayout(smem))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "flip": In(BarrierEventSignature(smem)),
                # Engines that are idle, in the order of spec.core.Engine.
                "idle": In(_ENGINES),
                # Engines whose record holds an error, in the same order.
                "failed": In(_ENGINES),
                # Tags of these records.
                "tags": In(unsigned(16)).array(_ENGINES),
                # Registers of the processing engine must not be written.
                "put_busy": In(1),
                # Strobe: engines forget their records.
                "clear_errors": Out(1),
                # Strobe: a word has been carried out.
                "word_done": Out(1),
                # With ``word_done``: its kind.
                "word_kind": Out(4),
                # With ``word_done``: of its last word.
                "word_index": Out(32),
                # A program runs.
                "running": Out(1),
                # Level.
                "irq": Out(1),
            }
            | ({"jobs": Out(stream.Signature(JOB.bits))} if params.conv else {})
            # The core of a cluster is stopped: programs stop.
            | ({"stopped": In(1)} if params.tmau.cores > 1 else {})
        )

    def elaborate(self, platform):
        m = Module()
        self._make(m)
        self._connect_words(m)
        self._connect_engines(m)
        self._connect_control(m)
        return m

    def _make(self, m):
        params, sizes, addr_width = self._params, self._params.program, self._params.tmau.addr_width
        m.submodules.control = self._control = ProgramControl(params)
        m.submodules.reader = self._reader = LineReader(
            addr_width, params.tmau.bus_bytes, params.tmau.max_burst, 2 * max(sizes.words, sizes.instruction_lines)
        )
        m.submodules.fetcher = self._fetcher = ProgramFetcher(addr_width, sizes.words)
        m.submodules.decoder = self._decoder = WordDecoder(params)
        m.submodules.dispatcher = self._dispatcher = Dispatcher(params, self._regions)
        m.submodules.ranges = self._ranges = RangeCheck(addr_width)
        m.submodules.streamer = self._streamer = InstructionStreamer(addr_width, sizes.instruction_lines)
        m.submodules.caller = self._caller = BarrierCaller(params.smem)
        m.submodules.cause = self._cause = StopCause()

    def _connect_words(self, m):
        """From memory to the dispatcher."""
        reader, fetcher, decoder = self._reader, self._fetcher, self._decoder
        dispatcher, streamer, ranges = self._dispatcher, self._streamer, self._ranges
        for number, user in enumerate((fetcher, streamer)):
            connect(m, user=user.requests, reader=reader.requests[number])
            connect(m, reader=reader.lines[number], user=user.lines)
        connect(m, reader=reader.axi, axi=flipped(self.axi))
        connect(m, fetcher=fetcher.o, decoder=decoder.i)
        connect(m, decoder=decoder.o, dispatcher=dispatcher.words)
        m.d.comb += [
            fetcher.base.eq(self._control.address[6:]),
            fetcher.count.eq(self._control.count),
            fetcher.jump.eq(dispatcher.jump),
            fetcher.target.eq(dispatcher.target),
            fetcher.halt.eq(dispatcher.halt),
            decoder.drop.eq(dispatcher.jump | dispatcher.halt),
            streamer.halt.eq(dispatcher.halt),
            dispatcher.drained.eq(~fetcher.busy & ~streamer.busy),
            ranges.line.eq(dispatcher.range_line),
            ranges.lines.eq(dispatcher.range_lines),
            ranges.window.eq(self._control.window),
            ranges.go.eq(dispatcher.range_go),
            dispatcher.range_done.eq(ranges.done),
            dispatcher.range_code.eq(ranges.code),
        ]

    def _connect_engines(self, m):
        """From the dispatcher to those that do the work."""
        dispatcher, streamer, caller = self._dispatcher, self._streamer, self._caller
        connect(m, dispatcher=dispatcher.commands, commands=flipped(self.commands))
        if self._params.conv:
            connect(m, dispatcher=dispatcher.jobs, jobs=flipped(self.jobs))
        connect(m, dispatcher=dispatcher.runs, streamer=streamer.i)
        m.submodules.calls = calls = Slot(INSTRUCTION_BITS)
        # Both may hold an instruction that a stopped program left. Otherwise only one of them has any.
        m.submodules.instructions = instructions = StreamArbiter(INSTRUCTION_BITS, 2)
        connect(m, dispatcher=dispatcher.instructions, calls=calls.i)
        connect(m, streamer=streamer.instructions, instructions=instructions.i[0])
        connect(m, calls=calls.o, instructions=instructions.i[1])
        connect(m, merged=instructions.o, instructions=flipped(self.instructions))
        connect(m, dispatcher=dispatcher.calls, caller=caller.i)
        connect(m, caller=caller.requests, barriers=flipped(self.barriers))
        connect(m, results=flipped(self.barrier_results), caller=caller.results)
        connect(m, flip=flipped(self.flip), caller=caller.flip)
        connect(m, dispatcher=dispatcher.accesses, register_writes=flipped(self.register_writes))
        m.d.comb += [
            caller.give_up.eq(self._cause.stops),
            dispatcher.run_failed.eq(streamer.failed),
            dispatcher.called.eq(~calls.o.valid),
            dispatcher.put_busy.eq(self.put_busy),
            dispatcher.call_failed.eq(caller.failed),
            dispatcher.call_passed.eq(caller.passed),
            dispatcher.idle.eq(self.idle),
        ]

        with m.If(self.instructions.valid):  # left by a program that stopped
            m.d.comb += dispatcher.idle[Engine.PE - 1].eq(0)

    def _connect_control(self, m):
        """Registers, and why programs stop."""
        control, dispatcher, cause, streamer = self._control, self._dispatcher, self._cause, self._streamer
        connect(m, accesses=flipped(self.accesses), control=control.accesses)
        m.d.comb += [
            dispatcher.start.eq(control.start),
            dispatcher.address.eq(control.address),
            dispatcher.count.eq(control.count),
            dispatcher.stops.eq(cause.stops),
            cause.begin.eq(dispatcher.begin),
            cause.runs.eq(dispatcher.carries_out),
            *(getattr(cause, name).eq(getattr(dispatcher, name)) for name in ("failed", "code", "tag", "index")),
            cause.engines.eq(self.failed),
            *(kept.eq(tag) for kept, tag in zip(cause.engine_tags, self.tags, strict=True)),
            cause.advances.eq(dispatcher.word_done | (self.instructions.valid & self.instructions.ready)),
            self.clear_errors.eq(dispatcher.begin),
            cause.watchdog.eq(control.watchdog),
            cause.stop.eq(control.stop | self.stopped if self._params.tmau.cores > 1 else control.stop),
            control.busy.eq(dispatcher.busy),
            *(getattr(control, name).eq(getattr(dispatcher, name)) for name in ("ended", "interrupt", "index")),
            control.cause.eq(cause.cause),
            control.events.word.eq(dispatcher.word_done),
            control.events.wait.eq(dispatcher.waits),
            control.events.stall_engine.eq(dispatcher.stall_engine),
            control.events.stall_fetch.eq(dispatcher.stall_fetch | streamer.stall),
            control.events.beat.eq(self.axi.rvalid & self.axi.rready),
            self.word_done.eq(dispatcher.word_done),
            self.word_kind.eq(dispatcher.kind),
            self.word_index.eq(dispatcher.index),
            self.running.eq(dispatcher.busy),
            self.irq.eq(control.irq),
        ]
