"""Stores: consecutive words of a lane are written as one chunk."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import CHUNK_BYTES

from ...smem.layouts import ScatterWriteLayout
from ..params import LANES

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
    instruction, and of lanes that go on in another chunk. Words are not taken while chunks are being written; so four
    words, from the first of a chunk on, take five cycles.

    Latency: 1 cycle from the word that ends a chunk to its write.

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
        words = self.i.payload
        chunks = Signal(data.ArrayLayout(self._params.chunk_width, LANES))
        kept = Signal(data.ArrayLayout(8 * CHUNK_BYTES, LANES))
        strobes = Signal(data.ArrayLayout(CHUNK_BYTES, LANES))
        some = Signal(LANES)  # lanes with a byte to be written
        leaving = Signal(LANES)  # lanes that are being written

        # Lanes with a word; and those of them in another chunk than before.
        written, moved = Signal(LANES), Signal(LANES)
        for lane, word in enumerate(words.lanes):
            m.d.comb += [
                written[lane].eq(word.strobe.any()),
                moved[lane].eq(written[lane] & some[lane] & (word.chunk != chunks[lane])),
            ]
        take = Signal()
        m.d.comb += [
            self.i.ready.eq(~leaving.any() & ~moved.any()),
            take.eq(self.i.valid & self.i.ready),
            self.o.valid.eq(leaving.any()),
            self.o.payload.chunks.eq(chunks),
            self.o.payload.data.eq(kept),
            self.o.payload.strobes.eq(
                Cat(strobe & leaving[lane].replicate(CHUNK_BYTES) for lane, strobe in enumerate(strobes))
            ),
            self.idle.eq(~some.any()),
        ]

        with m.If(self.o.valid):
            with m.If(self.o.ready):
                m.d.sync += [leaving.eq(0), some.eq(some & ~leaving)]
        with m.Elif(take):
            ended = Cat(word.word == _LAST_WORD for word in words.lanes)
            m.d.sync += some.eq(some | written)
            m.d.sync += leaving.eq((some | written) & (ended & written | words.last.replicate(LANES)))
        with m.Elif(self.i.valid):
            m.d.sync += leaving.eq(moved)

        for lane, word in enumerate(words.lanes):
            with m.If(take & written[lane]):
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
        return m
