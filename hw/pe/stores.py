"""Stores: consecutive words of a lane are written as one chunk."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES

from ..smem.layouts import ScatterWriteLayout
from .params import LANES

__all__ = ["StoreMerger", "StoreWordsLayout"]

_LAST_WORD = CHUNK_BYTES // 4 - 1


class StoreWordsLayout(data.StructLayout):
    """A word of each lane, to be written."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "chunk": unsigned(params.chunk_width),
                "word": unsigned(2),  # place in the chunk
                "data": unsigned(32),
                "strobe": unsigned(4),  # one bit a byte; 0: the lane writes nothing
            }
        )
        super().__init__({"last": 1, "lanes": data.ArrayLayout(lane, LANES)})  # last: of the instruction


class StoreMerger(wiring.Component):
    """Collects the bytes of one chunk for each lane, and writes them when there will be no more.

    Chunks are written of lanes that have got the last word of theirs, of all lanes after the last word of an
    instruction, and of lanes that go on in another chunk. Words wait in a register while chunks are being written; so
    four words, from the first of a chunk on, take five cycles.

    Latency: 2 cycles from the word that ends a chunk to its write. ``i.ready`` depends on registers alone.

    Members
    -------
    i : In(stream of StoreWordsLayout)
    o : Out(stream of ScatterWriteLayout)
        From registers.
    idle : Out(1)
        Nothing waits to be written.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(StoreWordsLayout(params))),
                "o": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        held, held_valid = Signal(self.i.payload.shape()), Signal()  # the words that came last
        writes, moved = Signal(LANES), Signal(LANES)  # lanes with a word among them; and in another chunk than before
        chunks = Signal(data.ArrayLayout(self._params.chunk_width, LANES))
        kept = Signal(data.ArrayLayout(8 * CHUNK_BYTES, LANES))
        strobes = Signal(data.ArrayLayout(CHUNK_BYTES, LANES))
        some = Signal(LANES)  # lanes with a byte to be written
        leaving, will_leave = (
            Signal(LANES),
            Signal(LANES),
        )  # lanes being written; with the words that came last
        take, load, before = Signal(), Signal(), Signal(LANES)
        ended = Cat(word.word == _LAST_WORD for word in held.lanes)
        m.d.comb += [
            take.eq(held_valid & ~(leaving | moved).any()),
            will_leave.eq((some | writes) & (ended & writes | held.last.replicate(LANES))),
            self.i.ready.eq(~held_valid | take),
            load.eq(self.i.valid & self.i.ready),
            before.eq(writes & held_valid.replicate(LANES)),
            self.o.valid.eq(leaving.any()),
            self.o.payload.chunks.eq(chunks),
            self.o.payload.data.eq(kept),
            self.o.payload.strobes.eq(
                Cat(strobe & leaving[lane].replicate(CHUNK_BYTES) for lane, strobe in enumerate(strobes))
            ),
            self.idle.eq(~held_valid & ~some.any()),
        ]
        with m.If(self.o.valid):
            with m.If(self.o.ready):
                m.d.sync += [leaving.eq(0), some.eq(some & ~leaving)]
        with m.Elif(take):
            m.d.sync += [some.eq(some | writes), leaving.eq(will_leave), held_valid.eq(0)]
        with m.Else():
            m.d.sync += [leaving.eq(moved), moved.eq(0)]
        with m.If(load):
            m.d.sync += [held.eq(self.i.payload), held_valid.eq(1)]
            self._look(m, held, before, chunks, some, Mux(held_valid, will_leave, leaving), writes, moved)
        with m.If(take):
            self._merge(m, held, writes, chunks, kept, strobes, some)
        return m

    def _look(self, m, held, before, chunks, some, leaving, writes, moved):
        """Words that come: whether they are in other chunks is found out while those ``before`` them are taken."""
        for lane, (word, last) in enumerate(zip(self.i.payload.lanes, held.lanes, strict=True)):
            other = Mux(before[lane], word.chunk != last.chunk, word.chunk != chunks[lane])
            stays = (some[lane] | before[lane]) & ~leaving[lane]
            m.d.sync += [
                writes[lane].eq(word.strobe.any()),
                moved[lane].eq(word.strobe.any() & stays & other),
            ]

    @staticmethod
    def _merge(m, held, writes, chunks, kept, strobes, some):
        """Takes the words."""
        for lane, word in enumerate(held.lanes):
            with m.If(writes[lane]):
                m.d.sync += chunks[lane].eq(word.chunk)
                for place in range(_LAST_WORD + 1):
                    here = word.word == place
                    with m.If(here):
                        for byte in range(4):
                            with m.If(word.strobe[byte]):
                                at = 4 * place + byte
                                m.d.sync += kept[lane].word_select(at, 8).eq(word.data.word_select(byte, 8))
                    # The first word of a chunk forgets the bytes of the one before.
                    old = strobes[lane].word_select(place, 4)
                    new = word.strobe & here.replicate(4)
                    m.d.sync += old.eq(new | (old & some[lane].replicate(4)))
