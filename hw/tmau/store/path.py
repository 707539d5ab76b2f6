"""The store path, from shared memory to bus words."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...bus.bursts import WritesSignature
from ...lib.routing import Fork
from ...lib.stream import DeepQueue, Queue
from ...smem.signatures import LineReadSignature, LoanSignature
from ..layouts import CompletionLayout, StagedWordLayout, StoreRunLayout, TransferLayout, WordLayout
from .bursts import StoreFinisher, WriteGenerator
from .layouts import StoredRunLayout
from .segments import SegmentFetcher, WordAssembler
from .steps import StoreTracker, WordStepGenerator

__all__ = ["StorePath"]

#: Least depth of a queue of runs in block RAM, whose latency is two cycles.
_RUNS = 4


class StorePath(wiring.Component):
    """Performs transfers to global memory, and the first half of copies within shared memory; connections only.

    One bus word a cycle. Bursts and their words do not wait for each other.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                "runs": In(stream.Signature(StoreRunLayout(params))),  # In order. Up to ``max_outstanding`` wait here.
                "fetch": Out(LineReadSignature(params.smem)),  # Lines, read in the cycle of the handshake.
                # For transfers with ``stage``. All segments of a transfer are there before the transfer arrives.
                "staged": In(stream.Signature(StagedWordLayout(params))),
                "writes": Out(WritesSignature(params.addr_width, params.bus_bytes, params.window_owners)),
                "loop": Out(stream.Signature(WordLayout(params))),  # To the load path, for transfers with ``loop``.
                # For transfers that are not quiet and have no ``loop``.
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # Strobes for each transfer, in order: its source has been read; it is complete or, with ``loop``, all
                # its words have left.
                "read_stb": Out(1),
                "done_stb": Out(1),
                # Lines of other cores, for transfers with an ``owner``.
                **({"loans": Out(LoanSignature(params.smem, params.cores))} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.tracker = tracker = StoreTracker(params)
        m.submodules.fork = fork = Fork(StoredRunLayout(params), 2)
        m.submodules.generator = generator = WriteGenerator(params)
        # Bursts request the old words of reductions, and must run ahead of the words that these are combined with.
        ahead = max(2, params.old_words // 4 if params.has("reductions_global") else 0)
        if params.prefer_bram:
            waiting = DeepQueue(StoredRunLayout(params), max(_RUNS, ahead), direct=True)
        else:
            waiting = Queue(StoredRunLayout(params), ahead)
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
        m.d.sync += fetcher.left.eq(assembler.left)  # late, because it depends on ready of other blocks
        m.d.comb += [self.read_stb.eq(fetcher.read_stb), self.done_stb.eq(finish.done_stb)]
        return m
