"""The TMAU's data path: connections between the rooms, nothing else."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4 import Axi4ReadSignature
from ..bus.axi4_port import ReadPort
from ..bus.burst import BurstSplitter
from ..lib.join import join
from ..lib.stream import Queue
from ..smem.layouts import LandedLayout, LineLayout
from .descriptor_cache import DescriptorCache
from .fill import LineAssembler
from .finish import DoneLayout, Finisher
from .layouts import command_layout
from .realign import Realigner
from .requests import RequestGenerator
from .setup import Setup
from .steps import StepGenerator
from .swizzle import Swizzler
from .tracker import ResponseTracker
from .walker import TileWalker

__all__ = ["EventsLayout", "TmauCore"]


class EventsLayout(data.StructLayout):
    """What happened in a cycle, for the performance counters. All are strobes."""

    def __init__(self):
        super().__init__(
            {
                "command": unsigned(1),  # one was accepted
                "request": unsigned(1),  # a data burst was accepted by the bus
                "beat": unsigned(1),  # a data word came
                "descriptor_hit": unsigned(1),
                "descriptor_miss": unsigned(1),
                "stall_credit": unsigned(1),  # a burst waited because max_outstanding were in flight
                "stall_ar": unsigned(1),  # a request waited for the bus
                "stall_data": unsigned(1),  # the write half waited for a word
                "stall_smem": unsigned(1),  # a line waited for shared memory
            }
        )


class TmauCore(wiring.Component):
    """The rooms of docs/architecture.md, from commands to lines of shared memory.

    Members
    -------
    commands : stream of command_layout, in
    axi : Axi4ReadSignature, out
    writes : stream of LineLayout, out
    landed : stream of LandedLayout, out
        Presented in the cycle of the transfer's last write, or later.
    done : DoneLayout, out
        Strobe for each command that ends, after its last write.
    invalidate_descriptors : 1, in
        Strobe.
    events : EventsLayout, out
    queue_level : unsigned, out
        Commands that wait in the queue.
    idle : 1, out
        No command is anywhere in here.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "axi": Out(Axi4ReadSignature(params.addr_width, params.bus_width, 1)),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "landed": Out(stream.Signature(LandedLayout(params.smem))),
                "done": Out(DoneLayout(params)),
                "invalidate_descriptors": In(1),
                "events": Out(EventsLayout()),
                "queue_level": Out(range(params.queue_depth + 1)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.queue = queue = Queue(command_layout(), params.queue_depth)
        m.submodules.cache = cache = DescriptorCache(params)
        m.submodules.setup = setup = Setup(params)
        m.submodules.walker = walker = TileWalker(params)
        m.submodules.requests = requests = RequestGenerator(params)
        m.submodules.splitter = splitter = BurstSplitter(
            word_width=params.word_width,
            count_width=requests.count_width,
            bus_bytes=params.bus_bytes,
            max_burst=params.max_burst,
        )
        m.submodules.port = port = ReadPort(
            addr_width=params.addr_width,
            bus_bytes=params.bus_bytes,
            max_outstanding=params.max_outstanding,
            max_burst=params.max_burst,
        )
        m.submodules.tracker = tracker = ResponseTracker(params)
        m.submodules.steps = steps = StepGenerator(params)
        m.submodules.realign = realign = Realigner(params)
        m.submodules.fill = fill = LineAssembler(params)
        m.submodules.swizzle = swizzle = Swizzler(params)
        m.submodules.finish = finish = Finisher(params)

        # The request half.
        join(m, commands=flipped(self.commands), queue=queue.i)
        join(m, queue=queue.o, cache=cache.i)
        join(m, cache=cache.o, setup=setup.i)
        join(m, setup=setup.walks, walker=walker.i)
        join(m, walker=walker.o, requests=requests.i)
        join(m, requests=requests.requests, splitter=splitter.i)
        join(m, splitter=splitter.o, port=port.bursts)
        join(m, cache=cache.fetch, port=port.descriptors)
        join(m, port=port.descriptor_words, cache=cache.words)
        join(m, port=port.axi, axi=flipped(self.axi))

        # What the write half must know of what is in flight.
        join(m, setup=setup.transfers, tracker=tracker.transfers)
        join(m, requests=requests.rows, tracker=tracker.rows)

        # The write half.
        join(m, tracker=tracker.runs, steps=steps.runs)
        join(m, steps=steps.steps, realign=realign.steps)
        join(m, port=port.words, realign=realign.words)
        join(m, realign=realign.aligned, fill=fill.aligned)
        join(m, fill=fill.lines, swizzle=swizzle.lines)
        join(m, swizzle=swizzle.writes, writes=flipped(self.writes))

        # The end.
        join(m, swizzle=swizzle.completions, finish=finish.completions)
        join(m, setup=setup.finished, finish=finish.finished)
        join(m, finish=finish.landed, landed=flipped(self.landed))
        m.d.comb += [self.done.eq(finish.done), cache.invalidate_all.eq(self.invalidate_descriptors)]

        accepted = self.commands.valid & self.commands.ready
        under_way = Signal(range(params.queue_depth + params.commands_in_flight + 16))
        m.d.sync += under_way.eq(under_way + accepted - self.done.valid)
        m.d.comb += [
            self.idle.eq((under_way == 0) & ~self.done.valid),
            self.queue_level.eq(queue.level),
            self.events.command.eq(accepted),
            self.events.request.eq(port.ar_stb),
            self.events.beat.eq(port.beat_stb),
            self.events.descriptor_hit.eq(cache.hit_stb),
            self.events.descriptor_miss.eq(cache.miss_stb),
            self.events.stall_credit.eq(port.stall_credit),
            self.events.stall_ar.eq(port.stall_ar),
            self.events.stall_data.eq(realign.stall_data),
            self.events.stall_smem.eq(self.writes.valid & ~self.writes.ready),
        ]
        return m
