"""Loading of weights from shared memory into the memories of the slaves."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ...lib.stream import ShallowQueue
from ..layouts import GatheredLayout, GatherLayout, PlanLayout, WordWriteLayout, float_flag

__all__ = ["WeightLoader", "WeightWriter", "next_word", "ring_shape", "weight_queues", "weight_tag"]

#: Requests under way, and answers that can wait for the memories.
_UNDER_WAY = 16


def ring_shape(params):
    """A count of bytes of a quarter of a slave's memory, which wraps after two rounds."""
    return range(2 * params.quarter_bytes)


def next_word(params, place):
    """The beginning of the next word of a quarter, from a count of ``ring_shape``: jobs begin with whole words."""
    whole = params.conv.row_bytes
    return (place + whole - 1) & ~(whole - 1)


def weight_tag(params):
    """The tag of gathered weights: their destination. Bytes are counted from the beginning of ``word``."""
    span = 16 * params.lanes
    return data.StructLayout(
        {
            "slave": range(max(2, params.conv.slaves)),
            "word": range(params.words),  # the first word
            "begin": range(span),  # first byte to be written
            "end": range(span + 1),  # one after the last
            "bytes": range(span + 1),  # bytes of a quarter that this answer completes; 0: more answers complete them
        }
    )


def weight_queues(params):
    """Queues of answers: one for each word of an answer, but at most one for each slave."""
    return min(params.conv.slaves, params.lanes // params.row_slots)


class WeightLoader(wiring.Component):
    """Requests the weights of all slaves, in the order in which they are multiplied (docs/conv.md, "Who gets what").

    A *run* is one kernel position of a channel, or several that are merged: its bytes are contiguous in shared memory,
    and so are its rows in a slave's memory, with the last row filled up. With floats a run is one block of that, and
    the next run belongs to the next kernel position (docs/conv.md, "Order of sums"). A run is cut into pieces at
    multiples of the bytes of a request. A piece is requested for all channels of the pass, one after the other; then
    its bytes are complete in all slaves. Without ``stays`` the rows of a pass are loaded again for each tile.

    Throughput: a request of up to 16 · lanes bytes a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant from ``start`` on while ``busy``
                # Strobe, while not ``busy``. Weights of the previous job may be under way, or still in use.
                "start": In(1),
                # From the cycle after ``start`` until the last request has been accepted. Not in lane-private mode.
                "busy": Out(1),
                "weights_read": Out(1),  # all requests have been answered: unless ``busy``, all of K has been read
                "begins": Out(1),  # Strobe: ``WeightWriter`` is empty, and this job's weights begin at the next word.
                "o": Out(stream.Signature(GatherLayout(params, weight_tag(params)))),
                # A tile needs the rows of the pass; 1: the next tile is of the next pass. Not if weights stay.
                "tile": In(stream.Signature(1)),
                "freed": In(ring_shape(params)),  # bytes before this count are not needed any more
                "answered": In(range(weight_queues(params) + 1)),  # answers written in this cycle
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv, plan = self._params, self._params.conv, self.plan
        span = 16 * params.lanes
        address = unsigned(params.smem.addr_width)

        # The position of what is loaded next, from the outermost counter to the innermost.
        passes = Signal(params.pixel_width)
        first_channel = Signal(17)  # of the pass
        kernel_row, step = Signal(8), Signal(8)
        # Addresses in the pass's first channel: of the pass, the kernel row, the step and the piece.
        pass_address, row_address, step_address, piece_address = (
            Signal(address, name=f"{name}_address") for name in ("pass", "row", "step", "piece")
        )
        # Bytes of the run that remain, and those of them that are read.
        run_rest, read_rest = Signal(params.pixel_width + 1), Signal(params.pixel_width + 1)
        target = Signal(ring_shape(params))

        # The piece, for all channels: its first byte in the word, its bytes, and those of them that are read.
        begin, length = Signal(range(span)), Signal(range(span + 1))
        read = Signal(range(span + 1))
        used = Signal(ring_shape(params))  # more than a quarter if a job's first word begins after a full ring
        m.d.comb += [
            begin.eq(target[: exact_log2(span)]),
            length.eq(Mux(run_rest > span - begin, span - begin, run_rest)),
            read.eq(Mux(read_rest > length, length, read_rest)),
            used.eq(target - self.freed),
        ]
        channels = CHANNELS_AT_ONCE * conv.slaves
        channels_left = Signal(17)  # from the pass's first channel on, minus one
        last_channel = Signal(range(channels))
        m.d.comb += [
            channels_left.eq(plan.out_channels - 1 - first_channel),
            last_channel.eq(Mux(channels_left >= channels, channels - 1, channels_left)),
        ]

        # Requests leave from registers, as long as there is room for their answers.
        under_way = Signal(range(_UNDER_WAY + 1))
        channel, channel_address = Signal(range(channels)), Signal(address)
        request = self.o.payload
        word = Signal(range(params.quarter_bytes // conv.row_bytes))
        can_leave = Signal()
        m.d.comb += [
            word.eq((target - begin) >> exact_log2(conv.row_bytes)),
            can_leave.eq(~self.o.valid | self.o.ready),
            self.weights_read.eq(under_way == 0),
        ]
        leaves, repeats = Signal(), Signal()  # a request leaves; the next tile is of the same pass
        m.d.sync += under_way.eq(under_way + leaves - self.answered)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        by_blocks = float_flag(params, plan, "floats")
        block, block_begin = Signal(params.pixel_width), Signal(params.pixel_width)  # its number, and its first byte
        block_bytes, run_bytes = Signal(8), Signal(params.pixel_width + 1)
        m.d.comb += [
            block_bytes.eq(1 << plan.granularity),
            run_bytes.eq(Mux(by_blocks, block_bytes, (plan.last_block + 1) << plan.granularity)),
        ]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE") | self.o.valid)
            with m.State("IDLE"):
                m.d.sync += [passes.eq(0), first_channel.eq(0), pass_address.eq(plan.k)]
                with m.If(self.start & ~plan.lanes):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                with m.If(self.weights_read):
                    m.d.comb += self.begins.eq(1)
                    m.d.sync += target.eq(next_word(params, target))
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.sync += [kernel_row.eq(0), step.eq(0), row_address.eq(pass_address), step_address.eq(pass_address)]
                # A pass with fewer channels must find the writer's queues empty.
                settled = (last_channel == channels - 1) | self.weights_read
                m.d.comb += self.tile.ready.eq(settled & ~plan.stays)
                m.d.sync += repeats.eq(~self.tile.payload)
                with m.If(settled & (plan.stays | self.tile.valid)):
                    m.next = "RUN"
            with m.State("RUN"):
                pixel = Mux(step == plan.last_step, plan.last_bytes, plan.pixel_bytes)
                m.d.sync += [piece_address.eq(step_address), run_rest.eq(run_bytes), read_rest.eq(pixel)]
                if params.floats:
                    with m.If(by_blocks):
                        m.d.sync += [
                            piece_address.eq(step_address + block_begin),
                            read_rest.eq(Mux(pixel > block_begin, pixel - block_begin, 0)),
                        ]
                m.next = "PIECE"
            with m.State("PIECE"):
                m.d.sync += [channel.eq(0), channel_address.eq(piece_address - begin)]
                with m.If((used + length <= params.quarter_bytes) & can_leave):
                    m.d.sync += self._ranges(request, begin, read)
                    m.next = "CHANNELS"
            with m.State("CHANNELS"):
                with m.If(can_leave & (under_way != _UNDER_WAY)):
                    last = channel == last_channel
                    m.d.comb += leaves.eq(1)
                    m.d.sync += [
                        self.o.valid.eq(1),
                        request.tag.slave.eq(channel[: exact_log2(conv.slaves)]),
                        request.tag.word.eq(word | channel[exact_log2(conv.slaves) :] << len(word)),
                        request.tag.begin.eq(begin),
                        request.tag.end.eq(begin + length),
                        request.tag.bytes.eq(Mux(last, length, 0)),
                        *(piece.address.eq(channel_address + 16 * lane) for lane, piece in enumerate(request.pieces)),
                        channel.eq(channel + 1),
                        channel_address.eq(channel_address + plan.k_pitch),
                    ]
                    with m.If(last):
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += [
                    target.eq(target + length),
                    piece_address.eq(piece_address + length),
                    run_rest.eq(run_rest - length),
                    read_rest.eq(read_rest - read),
                ]
                m.next = "PIECE"
                with m.If(run_rest == length):
                    m.next = "RUN"
                    m.d.sync += [step.eq(step + 1), step_address.eq(step_address + plan.k_step)]
                    with m.If((step == plan.last_step) & by_blocks & (block != plan.last_block)):
                        m.d.sync += [step.eq(0), step_address.eq(row_address)]
                        m.d.sync += [block.eq(block + 1), block_begin.eq(block_begin + block_bytes)]
                    with m.Elif(step == plan.last_step):
                        following = row_address + plan.k_row
                        m.d.sync += [step.eq(0), kernel_row.eq(kernel_row + 1), block.eq(0), block_begin.eq(0)]
                        m.d.sync += [row_address.eq(following), step_address.eq(following)]
                        with m.If(kernel_row == plan.last_kernel_row):
                            m.next = "PASS"
                            with m.If(plan.stays | ~repeats):
                                m.d.sync += [
                                    passes.eq(passes + 1),
                                    first_channel.eq(first_channel + channels),
                                    pass_address.eq(pass_address + (plan.k_pitch << exact_log2(channels))),
                                ]
                                with m.If(passes == plan.last_pass):
                                    m.next = "IDLE"
        m.d.comb += [request.size.eq(4), request.fill.eq(plan.k_fill)]
        return m

    def _ranges(self, request, begin, read):
        """The bytes of each piece that are read, if they begin at ``begin`` of the first piece."""
        assigns, end = [], begin + read
        for lane, piece in enumerate(request.pieces):
            assigns += [
                piece.low.eq(Mux(begin > 16 * lane, Mux(begin > 16 * lane + 16, 16, begin - 16 * lane), 0)),
                piece.high.eq(Mux(end > 16 * lane, Mux(end > 16 * lane + 16, 16, end - 16 * lane), 0)),
            ]
        return assigns


class WeightWriter(wiring.Component):
    """Writes gathered weights to the memories of the slaves, as many bytes a cycle as are gathered.

    An answer has several words for one slave, whose memory is written a word a cycle. Therefore there is a queue for
    each word of an answer: slave s uses the queue of number s modulo the queues, and successive answers are for
    successive slaves, starting with slave 0. A piece is complete when the answer for its last channel is written: the
    queue of that answer has had at least as many answers of the piece as any other queue, and the latest one. A piece
    for other channels than the previous one must find empty queues.

    Latency: 2 cycles. Throughput: a word a cycle for each queue. Each queue has room for all requests under way.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        self._queues = weight_queues(params)
        super().__init__(
            {
                "begins": In(1),  # Strobe: a job begins with the next word of a quarter; all queues are empty.
                "i": In(stream.Signature(GatheredLayout(params, weight_tag(params)), always_ready=True)),
                "answered": Out(range(self._queues + 1)),  # answers that leave in this cycle
                "writes": Out(data.ArrayLayout(WordWriteLayout(params), params.conv.slaves)),  # registered
                "written": Out(ring_shape(params)),  # bytes before this count are complete in all slaves
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, queues = self._params, self._queues
        answered = Signal(queues)
        complete = [Signal(range(16 * params.lanes + 1), name=f"complete{number}") for number in range(queues)]
        for number in range(queues):
            tag = self._serve(m, number, answered[number])
            m.d.sync += complete[number].eq(Mux(answered[number], tag.bytes, 0))
        m.d.comb += self.answered.eq(sum(answered))
        # Two pieces are never completed in one cycle: their last answers are in the same queue.
        written = Signal.like(self.written)
        m.d.comb += written.eq(self.written + reduce(or_, complete))
        m.d.sync += self.written.eq(Mux(self.begins, next_word(params, written), written))
        return m

    def _serve(self, m, number, answered):
        """Writes the words of a queue's answers one after the other. Returns the tag of the oldest answer."""
        params, conv = self._params, self._params.conv
        shape = GatheredLayout(params, weight_tag(params))
        queue = m.submodules[f"queue{number}"] = ShallowQueue(shape, _UNDER_WAY)
        selected = self.i.payload.tag.slave & (self._queues - 1) == number
        m.d.comb += [queue.i.valid.eq(self.i.valid & selected), queue.i.payload.eq(self.i.payload)]
        answer, tag = queue.o.payload, queue.o.payload.tag
        words = params.lanes // params.row_slots
        count = Signal(range(max(2, words)), name=f"count{number}")
        place = Signal(range(max(2, words)), name=f"place{number}")  # of the word in the answer
        bits = 8 * conv.row_bytes
        word, strobe = Signal(bits, name=f"word{number}"), Signal(conv.row_bytes, name=f"strobe{number}")
        strobes = Signal(16 * params.lanes, name=f"strobes{number}")
        last = Signal(name=f"last{number}")
        m.d.comb += [
            place.eq((tag.begin >> exact_log2(conv.row_bytes)) + count),
            word.eq(answer.data.as_value().word_select(place, bits)),
            strobes.eq(((1 << tag.end) - 1) & ~((1 << tag.begin) - 1)),
            strobe.eq(strobes.word_select(place, conv.row_bytes)),
            last.eq((place + 1) << exact_log2(conv.row_bytes) >= tag.end),
            queue.o.ready.eq(last),
            answered.eq(queue.o.valid & last),
        ]
        with m.If(queue.o.valid):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        for slave in range(number, conv.slaves, self._queues):
            write = self.writes[slave]
            m.d.sync += [
                write.word.eq(tag.word + place),
                write.data.eq(word),
                write.strobe.eq(Mux(queue.o.valid & (tag.slave == slave), strobe, 0)),
            ]
        return tag
