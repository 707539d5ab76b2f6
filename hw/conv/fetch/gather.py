"""The gatherer: pieces of shared memory, read, aligned and packed, for several requesters."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from tilewright.spec import CHUNK_BYTES

from ...lib.logic import delay, rotate_bytes
from ...lib.routing import StreamArbiter
from ...lib.stream import Queue, ShallowQueue
from ...smem.layouts import ReadLayout, read_data_layout
from ..layouts import GatheredLayout, GatherLayout
from .reads import AnswerLayout, GatherPlanner, GatherReadLayout, in_pairs

__all__ = ["GatherShare", "Gatherer", "PiecePacker", "shared_tag"]

_PLACES = range(CHUNK_BYTES)
#: The largest size, of 16 bytes.
_SIZES = ceil_log2(CHUNK_BYTES)
#: Reads under way: those in the skid buffer, the consumer port and on the way to it, and a few more.
_IN_FLIGHT = 8


class PiecePacker(wiring.Component):
    """Extracts the bytes of each piece from the chunks of a request's answers, and packs the pieces side by side.

    There is a register after each stage: the answer; the 16 bytes of each piece, where they are in its one or two
    chunks; rotated by up to three bytes; rotated by multiples of four, and filled; packed. The answers of a request are
    collected in the second stage.

    Latency: ``LATENCY`` cycles from a request's last answer. Throughput: an answer a cycle, without stalls.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like
    """

    LATENCY = 5

    def __init__(self, params, tag):
        self._params = params
        self._tag = tag
        self.valid = [Signal(name=f"valid{n + 1}") for n in range(self.LATENCY)]  # of each register
        super().__init__(
            {
                "i": In(stream.Signature(AnswerLayout(params, tag), always_ready=True)),
                # Registered. One for each answer with ``last``; with up to four lanes, for each answer.
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answer = Signal(AnswerLayout(self._params, self._tag), reset_less=True)
        complete = self.valid[0] if in_pairs(self._params) else self.valid[0] & answer.read.last
        m.d.sync += [Cat(self.valid).eq(Cat(self.i.valid, complete, self.valid[1:-1])), answer.eq(self.i.payload)]
        reads = [answer.read]  # of the first three registers
        for name in ("chosen", "rotated"):
            reads.append(Signal.like(answer.read, name=f"{name}_read", reset_less=True))
            m.d.sync += reads[-1].eq(reads[-2])

        pieces = []
        for n in range(self._params.lanes):
            bytes_ = self._choose(m, answer, n)
            # With a register between the two rotations each byte has two choices of four instead of one of sixteen.
            piece = reads[1].pieces[n]
            bytes_ = rotate_bytes(m, bytes_, piece.offset[:2], left=False, name=f"near{n}_")
            bytes_ = delay(m, bytes_, 1, name=f"rotated{n}")
            inside = delay(m, Cat((piece.low <= i) & (piece.high > i) for i in _PLACES), 1, name=f"inside{n}")
            by_fours = Cat(Const(0, 2), reads[2].pieces[n].offset[2:])
            bytes_ = rotate_bytes(m, bytes_, by_fours, left=False, name=f"far{n}_")
            filled = (Mux(inside[i], bytes_.word_select(i, 8), reads[2].fill.word_select(i & 1, 8)) for i in _PLACES)
            pieces.append(delay(m, Cat(filled), 1, name=f"piece{n}"))

        size, tag = delay(m, reads[2].size, 1, name="size"), delay(m, reads[2].tag, 1, name="tag")
        m.d.sync += [self.o.payload.data[slot].eq(_packed(m, pieces, size, slot)) for slot in range(len(pieces))]
        m.d.sync += Value.cast(self.o.payload.tag).eq(tag)
        m.d.comb += self.o.valid.eq(self.valid[-1])
        return m

    def _choose(self, m, answer, n):
        """The 16 bytes of piece n's chunks, each where it is in its chunk: those before the piece's offset are from the
        second chunk, if there are two."""
        piece = self.i.payload.read.pieces[n]
        if in_pairs(self._params):
            chunks, lane, enable = [answer.chunks[2 * n], answer.chunks[2 * n + 1]], 0, 1
        else:
            chunks, lane = answer.chunks, piece.lane
            enable = self.valid[0] & answer.read.halves[2 * n // self._params.lanes]
        bytes_ = Signal(8 * CHUNK_BYTES, name=f"chosen{n}", reset_less=True)
        for place in _PLACES:
            # The choice is computed while the answer is registered; afterwards it would be the longest path.
            choice = Signal(ceil_log2(len(chunks)), name=f"choice{n}_{place}", reset_less=True)
            m.d.sync += choice.eq(lane + (piece.two & (piece.offset > place)))
            with m.If(enable):
                candidates = Cat(chunk.word_select(place, 8) for chunk in chunks)
                m.d.sync += bytes_.word_select(place, 8).eq(candidates.word_select(choice, 8))
        return bytes_


def _packed(m, pieces, size, slot):
    """The 16 bytes of one slot. If a size has no piece for a byte, it is the byte of the largest size."""
    packed = Signal(8 * CHUNK_BYTES, name=f"packed{slot}")
    with m.Switch(size):
        for log2 in range(_SIZES):
            bytes_ = []
            for byte in range(CHUNK_BYTES * slot, CHUNK_BYTES * (slot + 1)):
                piece, place = byte >> log2, byte & (1 << log2) - 1
                if piece >= len(pieces):
                    piece, place = slot, byte % CHUNK_BYTES
                bytes_.append(pieces[piece].word_select(place, 8))
            with m.Case(log2):
                m.d.comb += packed.eq(Cat(bytes_))
        with m.Default():
            m.d.comb += packed.eq(pieces[slot])
    return packed


class Gatherer(wiring.Component):
    """Reads pieces of up to 16 bytes each, at any addresses of shared memory, and returns them packed.

    Byte i of a piece is the byte at its address + i, modulo the size of the memory, if ``low`` <= i < ``high``, else
    the low byte of the fill for even i and the high byte for odd i. Answers come in the order of requests. ``high`` is
    at most 16.

    A request takes one read, or two if its bytes are too scattered (:class:`GatherPlanner`). It takes none if all
    pieces are empty, or if what was read for an earlier request with ``reuse.keep`` has all bytes of a later one for
    the same ``reuse.part`` with ``reuse.again``. Up to 8 reads are under way at once.

    Latency from a request to its answer: 7 cycles without a read, 9 with one if the memory answers after 2 cycles; with
    eight lanes 2 more. Throughput: a request a cycle, if each takes at most one read.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like
        Returned with the answer.
    """

    def __init__(self, params, tag):
        self._params = params
        self.planner = GatherPlanner(params, tag)
        self.steps = Queue(GatherReadLayout(params, tag), _IN_FLIGHT)
        self.packer = PiecePacker(params, tag)
        super().__init__(
            {
                "i": In(stream.Signature(GatherLayout(params, tag))),
                # Registered. The requester must have room for the answer.
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
                # To the consumer port of shared memory; registered.
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                # One answer for each read, in order, after any time.
                "read_data": In(stream.Signature(read_data_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.planner, m.submodules.steps, m.submodules.packer = self.planner, self.steps, self.packer
        connect(m, flipped(self.i), self.planner.i)
        connect(m, flipped(self.reads), self.planner.reads)
        connect(m, self.planner.steps, self.steps.i)
        connect(m, self.packer.o, flipped(self.o))

        step, answers = self.steps.o, self.packer.i
        chunks = self.read_data.payload
        if self._params.reuses_reads:
            m.submodules.windows = windows = Memory(shape=read_data_layout(), depth=self._params.parts, init=[])
            write, read = windows.write_port(), windows.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(step.payload.part),
                write.data.eq(chunks),
                write.en.eq(self.read_data.valid & self.read_data.ready & step.payload.keeps),
                read.addr.eq(step.payload.part),
            ]
            chunks = Mux(step.payload.reuses, Value.cast(read.data), Value.cast(chunks))
        m.d.comb += [
            Value.cast(answers.payload.chunks).eq(chunks),
            answers.payload.read.eq(step.payload),
            answers.valid.eq(step.valid & (self.read_data.valid | ~step.payload.reads)),
            self.read_data.ready.eq(step.valid & step.payload.reads),
            step.ready.eq(self.read_data.valid | ~step.payload.reads),
        ]
        return m


def shared_tag(tags):
    """The layout of a tag that holds the number of a requester and its tag, which is any one of ``tags``."""
    return data.StructLayout({"user": range(len(tags)), "tag": max(Shape.cast(tag).width for tag in tags)})


class GatherShare(wiring.Component):
    """Arbitrates the requesters of one gatherer round-robin, and returns each answer to its requester.

    Latency: 1 cycle for a request, none for an answer. Throughput: one request a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tags : sequence of shape-like
        One for each requester, at least 2.
    """

    def __init__(self, params, tags):
        tags = tuple(tags)
        if len(tags) < 2:
            raise ValueError(f"tags must be of at least 2 users, not {len(tags)}")
        shared = shared_tag(tags)
        self.arbiter = StreamArbiter(GatherLayout(params, shared), len(tags))
        self.buffer = ShallowQueue(GatherLayout(params, shared), 2)
        ports = {
            "merged": Out(stream.Signature(GatherLayout(params, shared))),  # to the gatherer
            "gathered": In(stream.Signature(GatheredLayout(params, shared), always_ready=True)),  # from it
        }
        for n, tag in enumerate(tags):
            ports[f"i{n}"] = In(stream.Signature(GatherLayout(params, tag)))
            # The data goes to all requesters; ``valid`` is high for the right one.
            ports[f"o{n}"] = Out(stream.Signature(GatheredLayout(params, tag), always_ready=True))
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter, m.submodules.buffer = self.arbiter, self.buffer
        connect(m, self.arbiter.o, self.buffer.i)
        connect(m, self.buffer.o, flipped(self.merged))
        answer = self.gathered.payload
        for n, port in enumerate(self.arbiter.i):
            i, o = getattr(self, f"i{n}"), getattr(self, f"o{n}")
            tag = Value.cast(o.payload.tag)
            m.d.comb += [port.payload[name].eq(i.payload[name]) for name, _ in i.payload.shape() if name != "tag"]
            m.d.comb += [
                port.valid.eq(i.valid),
                i.ready.eq(port.ready),
                port.payload.tag.user.eq(n),
                port.payload.tag.tag.eq(Value.cast(i.payload.tag)),
                o.valid.eq(self.gathered.valid & (answer.tag.user == n)),
                o.payload.data.eq(answer.data),
                tag.eq(answer.tag.tag[: len(tag)]),
            ]
        return m
