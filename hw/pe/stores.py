"""Stores: consecutive words of a lane are written as one chunk."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
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
                "word": unsigned(2),  # position in the chunk
                "data": unsigned(32),
                "strobe": unsigned(4),  # one bit a byte; 0: the lane does not write
            }
        )
        super().__init__({"last": 1, "lanes": data.ArrayLayout(lane, LANES)})  # last: of the instruction


class StoreMerger(wiring.Component):
    """Collects the bytes of one chunk for each lane, and writes them when no more of them can come.

    A lane's chunk is written after its last word, before a word of another chunk, and, with the chunks of all lanes,
    after the last word of an instruction. One set of words waits in a register while chunks are written, so four words,
    from the first of a chunk on, take five cycles.

    Latency: 2 cycles from the word that completes a chunk to its write. ``i.ready`` depends on registers alone, ``o``
    is registered.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(StoreWordsLayout(params))),
                "o": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "idle": Out(1),  # no word is waiting to be written
            }
        )

    def elaborate(self, platform):
        m = Module()
        words, words_valid = Signal(self.i.payload.shape()), Signal()  # the input register
        writes, moved = Signal(LANES), Signal(LANES)  # its lanes with a word; with a word of another chunk than before
        chunks = Signal(data.ArrayLayout(self._params.chunk_width, LANES))
        collected = Signal(data.ArrayLayout(8 * CHUNK_BYTES, LANES))
        strobes = Signal(data.ArrayLayout(CHUNK_BYTES, LANES))
        pending = Signal(LANES)  # lanes with a byte to be written
        # Lanes that are being written, now, and after the words of the input register.
        leaving, will_leave = Signal(LANES), Signal(LANES)
        merge, load, previous = Signal(), Signal(), Signal(LANES)
        completed = Cat(word.word == _LAST_WORD for word in words.lanes)
        m.d.comb += [
            merge.eq(words_valid & ~(leaving | moved).any()),
            will_leave.eq((pending | writes) & (completed & writes | words.last.replicate(LANES))),
            self.i.ready.eq(~words_valid | merge),
            load.eq(self.i.valid & self.i.ready),
            previous.eq(writes & words_valid.replicate(LANES)),
            self.o.valid.eq(leaving.any()),
            self.o.payload.chunks.eq(chunks),
            self.o.payload.data.eq(collected),
            self.o.payload.strobes.eq(
                Cat(strobe & leaving[lane].replicate(CHUNK_BYTES) for lane, strobe in enumerate(strobes))
            ),
            self.idle.eq(~words_valid & ~pending.any()),
        ]
        with m.If(self.o.valid):
            with m.If(self.o.ready):
                m.d.sync += [leaving.eq(0), pending.eq(pending & ~leaving)]
        with m.Elif(merge):
            m.d.sync += [pending.eq(pending | writes), leaving.eq(will_leave), words_valid.eq(0)]
        with m.Else():
            m.d.sync += [leaving.eq(moved), moved.eq(0)]
        with m.If(load):
            m.d.sync += [words.eq(self.i.payload), words_valid.eq(1)]
            # Chunks are compared while the previous words are merged.
            left = Mux(words_valid, will_leave, leaving)
            for lane, (word, last) in enumerate(zip(self.i.payload.lanes, words.lanes, strict=True)):
                other = Mux(previous[lane], word.chunk != last.chunk, word.chunk != chunks[lane])
                stays = (pending[lane] | previous[lane]) & ~left[lane]
                m.d.sync += [writes[lane].eq(word.strobe.any()), moved[lane].eq(word.strobe.any() & stays & other)]
        with m.If(merge):
            for lane, word in enumerate(words.lanes):
                with m.If(writes[lane]):
                    m.d.sync += chunks[lane].eq(word.chunk)
                    self._merge(m, word, collected[lane], strobes[lane], pending[lane])
        return m

    @staticmethod
    def _merge(m, word, collected, strobes, pending):
        """Adds a word to the chunk of its lane. The first word of a chunk clears the strobes of the previous one."""
        for place in range(_LAST_WORD + 1):
            here = word.word == place
            with m.If(here):
                for byte in range(4):
                    with m.If(word.strobe[byte]):
                        m.d.sync += collected.word_select(4 * place + byte, 8).eq(word.data.word_select(byte, 8))
            of_word = strobes.word_select(place, 4)
            m.d.sync += of_word.eq((word.strobe & here.replicate(4)) | (of_word & pending.replicate(4)))
