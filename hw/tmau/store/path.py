"""The store path: from shared memory to bus words; connections only."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...bus.bursts import WritesSignature
from ...lib.routing import Fork
from ...lib.stream import DeepQueue, Queue, ShallowQueue
from ...smem.layouts import LineReadSignature, LoanSignature
from ..layouts import CompletionLayout, StagedWordLayout, StoreRunLayout, TransferLayout, WordLayout
from .bursts import StoreFinisher, WriteGenerator
from .layouts import StoredRunLayout
from .segments import SegmentFetcher, WordAssembler
from .steps import StoreTracker, WordStepGenerator

__all__ = ["StorePath"]

#: Runs in a block memory, two of which are on their way through it.
_RUNS = 4


class StorePath(wiring.Component):
    """Makes transfers to global memory, and the first part of those within shared memory: one bus word a cycle.

    A burst does not wait for its words, nor a word for its burst.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                # Of the transfers, in order; ``max_outstanding`` of them fit.
                "runs": In(stream.Signature(StoreRunLayout(params))),
                # Lines of shared memory, read in the cycle of the handshake.
                "fetch": Out(LineReadSignature(params.smem)),
                # From the load path, for transfers with ``stage``: all segments of one are there before the transfer
                # comes.
                "staged": In(stream.Signature(StagedWordLayout(params))),
                "writes": Out(WritesSignature(params.addr_width, params.bus_bytes, params.window_owners)),
                # To the load path, of transfers with ``loop``.
                "loop": Out(stream.Signature(WordLayout(params))),
                # Of transfers that are neither quiet nor ``loop``.
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # A transfer's source has been read; a transfer is complete, or, with ``loop``, handed over. One of each
                # for every transfer, in order.
                "read_stb": Out(1),
                "done_stb": Out(1),
                # Lines of other cores, of transfers with an ``owner``.
                **({"loans": Out(LoanSignature(params.smem, params.cores))} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.tracker = tracker = StoreTracker(params)
        m.submodules.fork = fork = Fork(StoredRunLayout(params), 2)
        m.submodules.generator = generator = WriteGenerator(params)
        # Old words of reductions are asked for by bursts, so many ahead of the words that they are combined with.
        ahead = max(2, params.old_words // 4 if params.has("reductions_global") else 0)
        if params.spares_tables:
            waiting = DeepQueue(StoredRunLayout(params), max(_RUNS, ahead), direct=True)
        elif ahead > 2:
            waiting = Queue(StoredRunLayout(params), ahead)
        else:
            waiting = ShallowQueue(StoredRunLayout(params), ahead)
        m.submodules.waiting = waiting
        m.submodules.steps = steps = WordStepGenerator(params)
        m.submodules.fetcher = fetcher = SegmentFetcher(params)
        m.submodules.assembler = assembler = WordAssembler(params)
        m.submodules.finish = finish = StoreFinisher(params)

        connect(m, flipped(self.transfers), tracker.transfers)
        connect(m, flipped(self.runs), tracker.runs)
        connect(m, tracker.o, fork.i)
        connect(m, fork.o[0], generator.i)
        connect(m, generator.bursts, flipped(self.writes.bursts))
        connect(m, fork.o[1], waiting.i)
        connect(m, waiting.o, steps.i)
        connect(m, steps.steps, fetcher.steps)
        connect(m, fetcher.fetch, flipped(self.fetch))
        connect(m, flipped(self.staged), fetcher.staged)
        connect(m, fetcher.o, assembler.i)
        connect(m, assembler.words, flipped(self.writes.words))
        connect(m, assembler.loop, flipped(self.loop))
        connect(m, assembler.ends, finish.ends)
        connect(m, flipped(self.writes.responses), finish.responses)
        connect(m, finish.completions, flipped(self.completions))
        if params.cores > 1:
            connect(m, fetcher.loans, flipped(self.loans))
        m.d.sync += fetcher.left.eq(assembler.left)  # a word leaves when whatever is behind the path takes it
        m.d.comb += [
            self.read_stb.eq(fetcher.read_stb),
            self.done_stb.eq(finish.done_stb),
        ]
        return m
