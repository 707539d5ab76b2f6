"""The front: from commands to transfers and walks."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.bursts import DescriptorWordLayout
from ..lib.layouts import command_layout
from ..lib.stream import Queue, ShallowQueue
from ..smem.signatures import LoanSignature
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

#: Members of a command that the descriptor cache decodes before it accepts the command.
_DECODED = ("opcode", "descriptor")
#: Most commands in a memory without an output register.
_SHALLOW = 32


class CommandQueue(wiring.Component):
    """A queue of ``depth`` commands, 2 to 64, a power of two.

    Opcode and descriptor address come from registers. The rest goes directly from the memory to a register of the
    descriptor cache; with ``prefer_bram`` that becomes the output register of a block RAM (up to 32 commands).

    Latency 1 when empty, one transfer in each direction in each cycle. ``i.ready`` and ``o.valid`` are registers.
    """

    def __init__(self, depth, *, prefer_bram=False):
        layout = command_layout()
        decoded = data.StructLayout({name: layout[name].shape for name in _DECODED})
        self.decoded = Queue(decoded, depth)
        self.rest = ShallowQueue(layout, depth, block=prefer_bram) if depth <= _SHALLOW else Queue(layout, depth)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "level": Out(range(depth + 1)),  # Commands in the queue.
                "moves": Out(1),  # ``o`` shows another command in the next cycle, or its first one.
                # The member ``descriptor`` of that command; undefined if a command was taken in the previous cycle.
                "ahead": Out(64),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoded, m.submodules.rest = decoded, rest = self.decoded, self.rest
        m.d.comb += [
            # Both queues hold the same commands.
            self.i.ready.eq(decoded.i.ready),
            self.o.valid.eq(decoded.o.valid),
            self.o.payload.eq(rest.o.payload),
            rest.i.payload.eq(self.i.payload),
            self.level.eq(decoded.level),
            self.moves.eq(decoded.moves),
            self.ahead.eq(decoded.ahead.descriptor),
        ]
        for queue in (decoded, rest):
            m.d.comb += [queue.i.valid.eq(self.i.valid), queue.o.ready.eq(self.o.ready)]
        for name in _DECODED:
            m.d.comb += [
                decoded.i.payload[name].eq(self.i.payload[name]),
                self.o.payload[name].eq(decoded.o.payload[name]),
            ]
        return m


class Front(wiring.Component):
    """Command queue, descriptor cache, the three setups, and dispatch; connections only."""

    def __init__(self, params):
        self._params = params
        # ``loans`` asks whether a copy may read another core's shared memory; with ``stopped`` all commands that leave
        # the queue are refused.
        cluster = {"loans": Out(LoanSignature(params.smem, params.cores)), "stopped": In(1)} if params.cores > 1 else {}
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "windows": In(all_windows(params)),
                "invalidate_descriptors": In(1),  # Strobe.
                "fetch": Out(stream.Signature(params.addr_width)),  # Global byte address of a descriptor to read.
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),  # Bus words of the descriptor.
                "issue": Out(IssueSignature(params)),
                # Strobes for each transfer of the store path, in order: its source has been read; it is complete.
                "store_read": In(1),
                "store_done": In(1),
                # State of the queues between the paths; see ``Exchange``.
                "loop": In(QueueStateSignature(params.exchange_words)),
                "stage": In(QueueStateSignature(params.exchange_words)),
                # Strobes: a command found its descriptor; it requested its descriptor.
                "hit_stb": Out(1),
                "miss_stb": Out(1),
                "queue_level": Out(range(params.queue_depth + 1)),  # Commands in the queue.
                **cluster,
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.queue = queue = CommandQueue(params.queue_depth, prefer_bram=params.prefer_bram)
        m.submodules.cache = cache = DescriptorCache(params)
        m.submodules.router = router = Router(params)
        m.submodules.setup = setup = Setup(params)
        m.submodules.block = block = BlockSetup(params)
        m.submodules.groups = groups = GroupTracker(params)
        m.submodules.exchange = exchange = Exchange(params)
        m.submodules.dispatch = dispatch = Dispatch(params)

        connect(m, flipped(self.commands), queue.i)
        windows = self.windows  # of the commands in the front
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
        # Jobs in exchange must leave before commands for another setup.
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

        still = Signal()  # no transfer is in progress or pending
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
