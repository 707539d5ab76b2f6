"""The store path: from shared memory to bus words; connections only."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...bus.bursts import WritesSignature
from ...lib.component import join
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

    Members
    -------
    transfers : In(stream of TransferLayout)
    runs : In(stream of StoreRunLayout)
        Of the transfers, in order; ``max_outstanding`` of them fit.
    fetch : Out(LineReadSignature(params.smem))
        Lines of shared memory, read in the cycle of the handshake.
    loans : Out(LoanSignature(params.smem, params.cores)) if params.cores > 1
        Lines of other cores, of transfers with an ``owner``.
    staged : In(stream of StagedWordLayout)
        From the load path, for transfers with ``stage``: all segments of one are there before the transfer comes.
    writes : Out(WritesSignature(params.addr_width, params.bus_bytes, params.window_owners))
    loop : Out(stream of WordLayout)
        To the load path, of transfers with ``loop``.
    completions : Out(stream of CompletionLayout)
        Of transfers that are neither quiet nor ``loop``.
    read_stb, done_stb : Out(1)
        A transfer's source has been read; a transfer is complete, or, with ``loop``, handed over. One of each for every
        transfer, in order.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                "runs": In(stream.Signature(StoreRunLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),
                "staged": In(stream.Signature(StagedWordLayout(params))),
                "writes": Out(WritesSignature(params.addr_width, params.bus_bytes, params.window_owners)),
                "loop": Out(stream.Signature(WordLayout(params))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "read_stb": Out(1),
                "done_stb": Out(1),
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

        join(m, transfers=flipped(self.transfers), tracker=tracker.transfers)
        join(m, runs=flipped(self.runs), tracker=tracker.runs)
        join(m, tracker=tracker.o, fork=fork.i)
        join(m, fork=fork.o[0], generator=generator.i)
        join(m, generator=generator.bursts, bursts=flipped(self.writes.bursts))
        join(m, fork=fork.o[1], waiting=waiting.i)
        join(m, waiting=waiting.o, steps=steps.i)
        join(m, steps=steps.steps, fetcher=fetcher.steps)
        join(m, fetcher=fetcher.fetch, fetch=flipped(self.fetch))
        join(m, staged=flipped(self.staged), fetcher=fetcher.staged)
        join(m, fetcher=fetcher.o, assembler=assembler.i)
        join(m, assembler=assembler.words, words=flipped(self.writes.words))
        join(m, assembler=assembler.loop, loop=flipped(self.loop))
        join(m, assembler=assembler.ends, finish=finish.ends)
        join(m, responses=flipped(self.writes.responses), finish=finish.responses)
        join(m, finish=finish.completions, completions=flipped(self.completions))
        if params.cores > 1:
            join(m, fetcher=fetcher.loans, loans=flipped(self.loans))
        m.d.sync += fetcher.left.eq(assembler.left)  # a word leaves when whatever is behind the path takes it
        m.d.comb += [
            self.read_stb.eq(fetcher.read_stb),
            self.done_stb.eq(finish.done_stb),
        ]
        return m
