"""The queue of commands."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.hdl import Module as FrontModule
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.bursts import DescriptorWordLayout
from ..lib.layouts import command_layout
from ..lib.stream import Queue, ShallowQueue
from ..smem.layouts import LoanSignature
from .descriptor.cache import DescriptorCache
from .dispatch import Dispatch, GroupTracker, Router
from .exchange import Exchange
from .layouts import all_windows
from .processors import WindowChoice
from .setup.block import BlockSetup
from .setup.lanes import LaneSetup
from .setup.tensor import Setup
from .signatures import IssueSignature, QueueStateSignature

__all__ = ["CommandQueue", "Front"]

#: Members of a command that its descriptor is looked up by, and that are checked meanwhile.
_LOOKED_AT = ("opcode", "descriptor")
#: Commands up to which the memory has no register of its own behind it.
_SHALLOW = 32


class CommandQueue(wiring.Component):
    """First in, first out. What is looked at in a command comes from a register; the rest, which goes to another one
    and nowhere else, straight from memory; with ``block`` from a block memory, whose register that one is.

    Latency 1 when empty, one transfer in each direction in each cycle. ``i.ready`` and ``o.valid`` are registers.

    Parameters
    ----------
    depth : int
        Commands it holds, 2 to 64, a power of two.
    block : bool
        Up to 32 commands.
    """

    def __init__(self, depth, *, block=False):
        layout = command_layout()
        looked_at = data.StructLayout({name: layout[name].shape for name in _LOOKED_AT})
        self.looked_at = Queue(looked_at, depth)
        self.rest = ShallowQueue(layout, depth, block=block) if depth <= _SHALLOW else Queue(layout, depth)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                # Commands held.
                "level": Out(range(depth + 1)),
                # ``o`` shows another command in the next cycle, or the first one.
                "moves": Out(1),
                # The member ``descriptor`` of that one; not when a command was taken in the cycle before.
                "ahead": Out(64),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.looked_at, m.submodules.rest = looked_at, rest = self.looked_at, self.rest
        m.d.comb += [
            # Both hold the same commands.
            self.i.ready.eq(looked_at.i.ready),
            self.o.valid.eq(looked_at.o.valid),
            self.o.payload.eq(rest.o.payload),
            rest.i.payload.eq(self.i.payload),
            self.level.eq(looked_at.level),
            self.moves.eq(looked_at.moves),
            self.ahead.eq(looked_at.ahead.descriptor),
        ]
        for queue in (looked_at, rest):
            m.d.comb += [queue.i.valid.eq(self.i.valid), queue.o.ready.eq(self.o.ready)]
        for name in _LOOKED_AT:
            m.d.comb += [
                looked_at.i.payload[name].eq(self.i.payload[name]),
                self.o.payload[name].eq(looked_at.o.payload[name]),
            ]
        return m


class Front(wiring.Component):
    """Queue, descriptor cache, the three kinds of setup, and dispatch."""

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "windows": In(all_windows(params)),
                # Strobe.
                "invalidate_descriptors": In(1),
                # Global byte address of a descriptor to be read.
                "fetch": Out(stream.Signature(params.addr_width)),
                # Its bus words.
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "issue": Out(IssueSignature(params)),
                # Strobe for each transfer of the store path, in order: its source has been read, it is complete.
                "store_read": In(1),
                "store_done": In(1),
                "loop": In(QueueStateSignature(params.exchange_words)),
                # The queues between the paths; see ``Exchange``.
                "stage": In(QueueStateSignature(params.exchange_words)),
                # A command found its descriptor, or requested it.
                "hit_stb": Out(1),
                "miss_stb": Out(1),
                # Commands that wait in the queue.
                "queue_level": Out(range(params.queue_depth + 1)),
                # Commands that leave the queue are refused.
                # Asks whether a copy may read another core's shared memory.
                **(
                    {"loans": Out(LoanSignature(params.smem, params.cores)), "stopped": In(1)}
                    if params.cores > 1
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = FrontModule()
        params = self.params
        m.submodules.queue = queue = CommandQueue(params.queue_depth, block=params.spares_tables)
        m.submodules.cache = cache = DescriptorCache(params)
        m.submodules.router = router = Router(params)
        m.submodules.setup = setup = Setup(params)
        m.submodules.block = block = BlockSetup(params)
        m.submodules.groups = groups = GroupTracker(params)
        m.submodules.exchange = exchange = Exchange(params)
        m.submodules.dispatch = dispatch = Dispatch(params)

        connect(m, flipped(self.commands), queue.i)
        windows = self.windows  # of the commands that are here
        if params.confines_apart:
            m.submodules.choice = choice = WindowChoice(params)
            connect(m, queue.o, choice.i)
            connect(m, choice.o, cache.i)
            m.d.comb += choice.windows.eq(self.windows)
            windows = choice.chosen
        else:
            connect(m, queue.o, cache.i)
        m.d.comb += [cache.moves.eq(queue.moves), cache.ahead.eq(queue.ahead)]
        connect(m, cache.fetch, flipped(self.fetch))
        connect(m, flipped(self.words), cache.words)
        connect(m, cache.o, router.i)
        kinds = [(router.tensors, setup, dispatch.jobs), (router.blocks, block, exchange.i[0])]
        if params.has("lanes"):
            m.submodules.lanes = lanes = LaneSetup(params)
            kinds.append((router.lanes, lanes, exchange.i[1]))
        for number, (commands, kind, jobs) in enumerate(kinds):
            connect(m, commands, kind.i)
            connect(m, kind.jobs, jobs)
            connect(m, kind.finished, dispatch.refused[number])
            m.d.comb += kind.windows.eq(windows)
        connect(m, setup.dimensions, cache.dimensions)
        if params.confines_apart:
            m.d.comb += choice.idle.eq(~cache.o.valid & ~Cat(kind.busy for _, kind, _ in kinds).any())
        # What exchange has taken from them is still in front of commands for another kind of setup.
        busy = [kind.busy for _, kind, _ in kinds]
        busy[1] |= exchange.busy
        m.d.comb += router.busy.eq(Cat(busy))

        if params.cores > 1:
            connect(m, block.loans, flipped(self.loans))
            m.d.comb += cache.stopped.eq(self.stopped)
        connect(m, flipped(self.loop), exchange.loop)
        connect(m, flipped(self.stage), exchange.stage)
        connect(m, exchange.o, dispatch.blocks)
        connect(m, dispatch.o, flipped(self.issue))

        still = Signal()  # no transfer is under way, or pending
        m.d.comb += [
            still.eq((dispatch.moving == 0) & ~exchange.busy),
            groups.issued.eq(dispatch.store_stb),
            groups.read_stb.eq(self.store_read),
            groups.done_stb.eq(self.store_done),
            groups.commit.eq(block.commit),
            block.unfinished.eq(groups.unfinished),
            block.unread.eq(groups.unread),
            block.groups_full.eq(groups.full | exchange.busy),
            block.still.eq(still),
            cache.windows.eq(windows),
            cache.invalidate_all.eq(self.invalidate_descriptors),
            cache.quiescent.eq(still & ~router.busy.any() & ~cache.o.valid),
            self.hit_stb.eq(cache.hit_stb),
            self.miss_stb.eq(cache.miss_stb),
            self.queue_level.eq(queue.level),
        ]
        return m
