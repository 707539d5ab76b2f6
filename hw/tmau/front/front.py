"""The front: from commands to transfers and walks; connections only."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...bus.axi4_port import DescriptorWordLayout
from ...bus.commands import command_layout
from ...lib.join import join
from ...lib.stream import Queue
from ..descriptor.cache import DescriptorCache
from ..jobs import PixelWalkLayout, WalkLayout
from ..layouts import ErrorLayout, TransferLayout, WindowsLayout
from ..setup.block import BlockSetup
from ..setup.lanes import LaneSetup
from ..setup.tensor import Setup
from .dispatch import Dispatch
from .exchange import Exchange
from .groups import GroupTracker
from .router import Router

__all__ = ["Front"]


class Front(wiring.Component):
    """Queue, descriptor cache, the three kinds of setup, and dispatch.

    Members
    -------
    commands : In(stream of command_layout())
    windows : In(WindowsLayout)
    invalidate_descriptors : In(1)
        Strobe.
    fetch : Out(stream of params.addr_width)
        Global byte address of a descriptor to be read.
    words : In(stream of DescriptorWordLayout)
        Its bus words.
    walks : Out(stream of WalkLayout)
    pixel_walks : Out(stream of PixelWalkLayout)
        To the walkers.
    tile_busy, pixel_busy : In(1)
        A walker is walking.
    load_transfers, store_transfers : Out(stream of TransferLayout)
        To the halves.
    finished : Out(stream of ErrorLayout)
        Commands that end here.
    load_completed, store_completed : In(1)
        Strobe: a transfer that is not quiet is complete.
    store_read, store_done : In(1)
        Strobe for each transfer of the store half, in order: its source has been read, it is complete.
    loop_level : In(range(params.loop_words + 1))
    stage_level : In(range(params.stage_lines + 1))
    loop_stb, stage_stb : In(1)
        The queues between the halves; see ``Exchange``.
    hit_stb, miss_stb : Out(1)
        A command found its descriptor, or asked for it.
    queue_level : Out(range(params.queue_depth + 1))
        Commands that wait in the queue.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "windows": In(WindowsLayout(params)),
                "invalidate_descriptors": In(1),
                "fetch": Out(stream.Signature(params.addr_width)),
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "walks": Out(stream.Signature(WalkLayout(params))),
                "pixel_walks": Out(stream.Signature(PixelWalkLayout(params))),
                "tile_busy": In(1),
                "pixel_busy": In(1),
                "load_transfers": Out(stream.Signature(TransferLayout(params))),
                "store_transfers": Out(stream.Signature(TransferLayout(params))),
                "finished": Out(stream.Signature(ErrorLayout())),
                "load_completed": In(1),
                "store_completed": In(1),
                "store_read": In(1),
                "store_done": In(1),
                "loop_level": In(range(params.loop_words + 1)),
                "stage_level": In(range(params.stage_lines + 1)),
                "loop_stb": In(1),
                "stage_stb": In(1),
                "hit_stb": Out(1),
                "miss_stb": Out(1),
                "queue_level": Out(range(params.queue_depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.queue = queue = Queue(command_layout(), params.queue_depth)
        m.submodules.cache = cache = DescriptorCache(params)
        m.submodules.router = router = Router(params)
        m.submodules.setup = setup = Setup(params)
        m.submodules.block = block = BlockSetup(params)
        m.submodules.lanes = lanes = LaneSetup(params)
        m.submodules.groups = groups = GroupTracker(params)
        m.submodules.exchange = exchange = Exchange(params)
        m.submodules.dispatch = dispatch = Dispatch(params)

        join(m, commands=flipped(self.commands), queue=queue.i)
        join(m, queue=queue.o, cache=cache.i)
        join(m, cache=cache.fetch, fetch=flipped(self.fetch))
        join(m, words=flipped(self.words), cache=cache.words)
        join(m, cache=cache.o, router=router.i)
        rooms = (
            (router.tensors, setup, dispatch.jobs[0]),
            (router.blocks, block, exchange.i[0]),
            (router.lanes, lanes, exchange.i[1]),
        )
        for number, (commands, room, jobs) in enumerate(rooms):
            join(m, router=commands, room=room.i)
            join(m, room=room.jobs, next=jobs)
            join(m, room=room.finished, dispatch=dispatch.refused[number])
            m.d.comb += room.windows.eq(self.windows)
        # What exchange has taken from them is still in front of commands for another room.
        m.d.comb += router.busy.eq(Cat(setup.busy, block.busy | exchange.busy, lanes.busy))

        join(m, exchange=exchange.o, dispatch=dispatch.jobs[1])
        join(m, dispatch=dispatch.walks, walks=flipped(self.walks))
        join(m, dispatch=dispatch.pixel_walks, pixel_walks=flipped(self.pixel_walks))
        join(m, dispatch=dispatch.load_transfers, load_transfers=flipped(self.load_transfers))
        join(m, dispatch=dispatch.store_transfers, store_transfers=flipped(self.store_transfers))
        join(m, dispatch=dispatch.finished, finished=flipped(self.finished))

        still = Signal()  # no transfer is under way, or pending
        m.d.comb += [
            still.eq((dispatch.moving == 0) & ~exchange.busy),
            exchange.loop_level.eq(self.loop_level),
            exchange.loop_stb.eq(self.loop_stb),
            exchange.stage_level.eq(self.stage_level),
            exchange.stage_stb.eq(self.stage_stb),
            dispatch.tile_busy.eq(self.tile_busy),
            dispatch.pixel_busy.eq(self.pixel_busy),
            dispatch.load_completed.eq(self.load_completed),
            dispatch.store_completed.eq(self.store_completed),
            groups.issued.eq(dispatch.store_stb),
            groups.read_stb.eq(self.store_read),
            groups.done_stb.eq(self.store_done),
            groups.commit.eq(block.commit),
            block.unfinished.eq(groups.unfinished),
            block.unread.eq(groups.unread),
            block.groups_full.eq(groups.full | exchange.busy),
            block.still.eq(still),
            cache.windows.eq(self.windows),
            cache.invalidate_all.eq(self.invalidate_descriptors),
            cache.quiescent.eq(still & ~router.busy.any() & ~cache.o.valid),
            self.hit_stb.eq(cache.hit_stb),
            self.miss_stb.eq(cache.miss_stb),
            self.queue_level.eq(queue.level),
        ]
        return m
