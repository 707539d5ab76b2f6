"""The store half: from lines of shared memory to bus words; connections only."""

from amaranth import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import LINE_BYTES

from ...bus.writes import WriteBurstLayout, WriteResponseLayout, WriteWordLayout
from ...lib.fork import Fork
from ...lib.join import join
from ..layouts import CompletionLayout, StagedLineLayout, StoreRunLayout, TransferLayout, WordLayout
from .bursts import WriteGenerator
from .finish import StoreFinisher
from .line_fetch import LineFetcher
from .tracker import StoredRunLayout, StoreTracker
from .word_assembler import WordAssembler
from .word_steps import WordStepGenerator

__all__ = ["StorePath"]


class StorePath(wiring.Component):
    """Makes transfers to global memory, and the first part of those within shared memory: one bus word a cycle.

    A burst does not wait for its words, nor a word for its burst.

    Members
    -------
    transfers : In(stream of TransferLayout)
    runs : In(stream of StoreRunLayout)
        Of the transfers, in order; ``max_outstanding`` of them fit.
    fetches : Out(stream of unsigned(params.smem.row_width))
        Lines of shared memory, read in the cycle of the handshake.
    line : In(8 * LINE_BYTES)
        In the cycle after it.
    staged : In(stream of StagedLineLayout)
        From the load half, for transfers with ``stage``.
    bursts : Out(stream of WriteBurstLayout)
    words : Out(stream of WriteWordLayout)
    responses : In(stream of WriteResponseLayout)
    loop : Out(stream of WordLayout)
        To the load half, of transfers with ``loop``.
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
                "fetches": Out(stream.Signature(unsigned(params.smem.row_width))),
                "line": In(8 * LINE_BYTES),
                "staged": In(stream.Signature(StagedLineLayout(params))),
                "bursts": Out(stream.Signature(WriteBurstLayout(params.addr_width, params.bus_bytes))),
                "words": Out(stream.Signature(WriteWordLayout(params.bus_bytes))),
                "responses": In(stream.Signature(WriteResponseLayout(params.addr_width))),
                "loop": Out(stream.Signature(WordLayout(params))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "read_stb": Out(1),
                "done_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.tracker = tracker = StoreTracker(params)
        m.submodules.fork = fork = Fork(StoredRunLayout(params), 2)
        m.submodules.generator = generator = WriteGenerator(params)
        m.submodules.steps = steps = WordStepGenerator(params)
        m.submodules.fetcher = fetcher = LineFetcher(params)
        m.submodules.assembler = assembler = WordAssembler(params)
        m.submodules.finish = finish = StoreFinisher(params)

        join(m, transfers=flipped(self.transfers), tracker=tracker.transfers)
        join(m, runs=flipped(self.runs), tracker=tracker.runs)
        join(m, tracker=tracker.o, fork=fork.i)
        join(m, fork=fork.o[0], generator=generator.i)
        join(m, generator=generator.bursts, bursts=flipped(self.bursts))
        join(m, fork=fork.o[1], steps=steps.i)
        join(m, steps=steps.steps, fetcher=fetcher.steps)
        join(m, fetcher=fetcher.fetches, fetches=flipped(self.fetches))
        join(m, staged=flipped(self.staged), fetcher=fetcher.staged)
        join(m, fetcher=fetcher.o, assembler=assembler.i)
        join(m, assembler=assembler.words, words=flipped(self.words))
        join(m, assembler=assembler.loop, loop=flipped(self.loop))
        join(m, assembler=assembler.ends, finish=finish.ends)
        join(m, responses=flipped(self.responses), finish=finish.responses)
        join(m, finish=finish.completions, completions=flipped(self.completions))
        m.d.comb += [
            fetcher.line.eq(self.line),
            fetcher.left.eq(assembler.left),
            self.read_stb.eq(fetcher.read_stb),
            self.done_stb.eq(finish.done_stb),
        ]
        return m
