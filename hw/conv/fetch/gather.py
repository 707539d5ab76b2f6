"""Chunks become pieces, and pieces are packed."""

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

__all__ = ["GatherShare", "Gatherer", "PiecePacker", "gather_ports", "shared_tag"]

_PLACES = range(CHUNK_BYTES)
#: The largest size, of 16 bytes.
_SIZES = ceil_log2(CHUNK_BYTES)


class PiecePacker(wiring.Component):
    """Takes the bytes of each piece out of the chunks of a request's answers, and puts the pieces side by side.

    A register behind each of: the answer as it comes; the 16 bytes of each piece, where they lie in its one or two
    chunks; those turned by up to three bytes; by fours, and filled; the pieces packed. Answers are collected in the
    second one.

    Latency: ``LATENCY`` cycles from a request's last answer. Throughput: one answer a cycle; nothing stalls.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like

    Members
    -------
    i : In(stream of AnswerLayout(params, tag), always ready)
    o : Out(stream of GatheredLayout(params, tag), always ready)
        Registered. One for each answer with ``last``; with up to four lanes, for each.
    """

    LATENCY = 5

    def __init__(self, params, tag):
        self._params = params
        self._tag = tag
        self.valid = [Signal(name=f"valid{n + 1}") for n in range(self.LATENCY)]  # of each register
        super().__init__(
            {
                "i": In(stream.Signature(AnswerLayout(params, tag), always_ready=True)),
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answer = Signal(AnswerLayout(self._params, self._tag), reset_less=True)
        complete = self.valid[0] if in_pairs(self._params) else self.valid[0] & answer.read.last
        m.d.sync += [
            Cat(self.valid).eq(Cat(self.i.valid, complete, self.valid[1:-1])),
            answer.eq(self.i.payload),
        ]
        # What belongs to the bytes in the next registers.
        reads = [answer.read]
        for name in ("chosen", "turned"):
            reads.append(Signal.like(answer.read, name=f"{name}_read", reset_less=True))
            m.d.sync += reads[-1].eq(reads[-2])

        pieces = []
        for n in range(self._params.lanes):
            chosen = self._choose(m, answer, n)
            # By up to three bytes, then by fours: a register between makes two choices of four out of one of sixteen.
            piece = reads[1].pieces[n]
            turned = rotate_bytes(m, chosen, piece.offset[:2], left=False, name=f"near{n}_")
            turned = delay(m, turned, 1, name=f"turned{n}")
            inside = delay(m, Cat((piece.low <= i) & (piece.high > i) for i in _PLACES), 1, name=f"inside{n}")
            by_fours = Cat(Const(0, 2), reads[2].pieces[n].offset[2:])
            turned = rotate_bytes(m, turned, by_fours, left=False, name=f"far{n}_")
            filled = (Mux(inside[i], turned.word_select(i, 8), reads[2].fill.word_select(i & 1, 8)) for i in _PLACES)
            pieces.append(delay(m, Cat(filled), 1, name=f"piece{n}"))

        size, tag = delay(m, reads[2].size, 1, name="size"), delay(m, reads[2].tag, 1, name="tag")
        for slot in range(len(pieces)):
            m.d.sync += self.o.payload.data[slot].eq(_packed(m, pieces, size, slot))
        m.d.sync += Value.cast(self.o.payload.tag).eq(tag)
        m.d.comb += self.o.valid.eq(self.valid[-1])
        return m

    def _choose(self, m, answer, n):
        """The 16 bytes of piece n's chunks, each where it lies in its chunk: those before the piece's offset are of the
        second chunk, if there are two."""
        piece = self.i.payload.read.pieces[n]
        if in_pairs(self._params):
            chunks, lane, takes = [answer.chunks[2 * n], answer.chunks[2 * n + 1]], 0, 1
        else:
            chunks, lane = answer.chunks, piece.lane
            takes = self.valid[0] & answer.read.halves[2 * n // self._params.lanes]
        chosen = Signal(8 * CHUNK_BYTES, name=f"chosen{n}", reset_less=True)
        for place in _PLACES:
            # Where it comes from is found while the answer is registered: behind that it would be the longest path.
            choice = Signal(ceil_log2(len(chunks)), name=f"choice{n}_{place}", reset_less=True)
            m.d.sync += choice.eq(lane + (piece.two & (piece.offset > place)))
            with m.If(takes):
                bytes_ = Cat(chunk.word_select(place, 8) for chunk in chunks)
                m.d.sync += chosen.word_select(place, 8).eq(bytes_.word_select(choice, 8))
        return chosen


def _packed(m, pieces, size, slot):
    """The 16 bytes of one slot. Where a size has no piece for a byte, it is that of the largest size."""
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


#: Reads under way: what the skid buffer, the consumer port and the way to it hold, and some to spare.
_IN_FLIGHT = 8


class Gatherer(wiring.Component):
    """Brings pieces of shared memory, of up to 16 bytes each, from wherever they lie, packed.

    Byte i of a piece is that at its address + i, modulo the size of the memory, if ``low`` <= i < ``high``, else of the
    fill: its low byte for even i. Answers come in the order of requests. ``high`` is at most 16.

    A request takes one read, or two if its bytes are too scattered (:class:`GatherPlanner`); none, if all pieces are
    empty, or if what was read for one with ``kept.keep`` has all bytes of a later one of the same ``kept.part`` with
    ``kept.again``. Up to 8 reads are under way at once.

    Latency from a request to its answer: 7 cycles without a read, 9 with one, from a memory that answers 2 cycles after
    it was asked; with eight lanes 2 more. Throughput: one request a cycle, if one read is enough for each.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like
        Of what comes back with the answer.

    Members
    -------
    i : In(stream of GatherLayout(params, tag))
        ``ready`` depends on registers only.
    o : Out(stream of GatheredLayout(params, tag), always ready)
        Registered. Who asks has the room.
    reads : Out(stream of ReadLayout(params.smem))
        Registered. To the consumer port of shared memory.
    read_data : In(stream of read_data_layout())
        Its answers, one for each, in order, whenever they come. ``ready`` is from registers.
    """

    def __init__(self, params, tag):
        self._params = params
        self.planner = GatherPlanner(params, tag)
        self.steps = Queue(GatherReadLayout(params, tag), _IN_FLIGHT)
        self.packer = PiecePacker(params, tag)
        super().__init__(
            {
                "i": In(stream.Signature(GatherLayout(params, tag))),
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "read_data": In(stream.Signature(read_data_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.planner, m.submodules.steps, m.submodules.packer = self.planner, self.steps, self.packer
        connect(m, i=flipped(self.i), planner=self.planner.i)
        connect(m, reads=flipped(self.reads), planner=self.planner.reads)
        connect(m, planner=self.planner.steps, steps=self.steps.i)
        connect(m, packer=self.packer.o, o=flipped(self.o))

        step, answers = self.steps.o, self.packer.i
        chunks = self.read_data.payload
        if self._params.keeps_reads:
            m.submodules.kept = kept = Memory(shape=read_data_layout(), depth=self._params.parts, init=[])
            write, read = kept.write_port(), kept.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(step.payload.part),
                write.data.eq(chunks),
                write.en.eq(self.read_data.valid & self.read_data.ready & step.payload.keeps),
                read.addr.eq(step.payload.part),
            ]
            chunks = Mux(step.payload.repeats, Value.cast(read.data), Value.cast(chunks))
        m.d.comb += [
            Value.cast(answers.payload.chunks).eq(chunks),
            answers.payload.read.eq(step.payload),
            answers.valid.eq(step.valid & (self.read_data.valid | ~step.payload.reads)),
            self.read_data.ready.eq(step.valid & step.payload.reads),
            step.ready.eq(self.read_data.valid | ~step.payload.reads),
        ]
        return m


def shared_tag(tags):
    """The layout of a tag that says whose it is, a number, and holds any one of ``tags``."""
    return data.StructLayout({"user": range(len(tags)), "tag": max(Shape.cast(tag).width for tag in tags)})


def gather_ports(params, tags):
    """Ports of users with such tags: a request ``i0``, ``i1`` …, and answers ``o0``, ``o1`` …, for each."""
    ports = {}
    for n, tag in enumerate(tags):
        ports[f"i{n}"] = In(stream.Signature(GatherLayout(params, tag)))
        ports[f"o{n}"] = Out(stream.Signature(GatheredLayout(params, tag), always_ready=True))
    return ports


class GatherShare(wiring.Component):
    """Merges requests of several users of one gatherer, round-robin, and says whose an answer is.

    Latency: 1 cycle for a request, none for an answer. Throughput: one request a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tags : sequence of shape-like
        Of each user, at least 2 of them.

    Members
    -------
    **gather_ports(params, tags)
        Of each user. An answer's data goes to all, and ``valid`` is high for its user only.
    merged : Out(stream of GatherLayout(params, shared_tag(tags)))
        To the gatherer, out of a small memory: valid depends on registers only.
    gathered : In(stream of GatheredLayout(params, shared_tag(tags)), always ready)
        From it.
    """

    def __init__(self, params, tags):
        tags = tuple(tags)
        if len(tags) < 2:
            raise ValueError(f"tags must be of at least 2 users, not {len(tags)}")
        shape = GatherLayout(params, shared_tag(tags))
        self.arbiter = StreamArbiter(shape, len(tags))
        self.buffer = ShallowQueue(shape, 2)
        super().__init__(
            {
                "merged": Out(stream.Signature(shape)),
                "gathered": In(stream.Signature(GatheredLayout(params, shared_tag(tags)), always_ready=True)),
                **gather_ports(params, tags),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter, m.submodules.buffer = self.arbiter, self.buffer
        connect(m, arbiter=self.arbiter.o, buffer=self.buffer.i)
        connect(m, buffer=self.buffer.o, merged=flipped(self.merged))
        answer = self.gathered.payload
        for n, port in enumerate(self.arbiter.i):
            i, o = getattr(self, f"i{n}"), getattr(self, f"o{n}")
            m.d.comb += [port.valid.eq(i.valid), i.ready.eq(port.ready)]
            m.d.comb += [port.payload[name].eq(value) for name, value in _untagged(i.payload).items()]
            tag = Value.cast(o.payload.tag)
            m.d.comb += [
                port.payload.tag.user.eq(n),
                port.payload.tag.tag.eq(Value.cast(i.payload.tag)),
                o.valid.eq(self.gathered.valid & (answer.tag.user == n)),
                o.payload.data.eq(answer.data),
                tag.eq(answer.tag.tag[: len(tag)]),
            ]
        return m


def _untagged(request):
    return {name: request[name] for name, _ in request.shape() if name != "tag"}
