"""Weights on their way from shared memory to the slaves."""

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

#: Requests under way: as many answers can wait for the memories.
_UNDER_WAY = 16


def ring_shape(params):
    """Bytes of a quarter of a slave's memory, once round more than it has."""
    return range(2 * params.quarter_bytes)


def next_word(params, place):
    """Where the next word of a quarter begins, from a place as of ``ring_shape`` on: jobs begin with whole words."""
    whole = params.conv.row_bytes
    return (place + whole - 1) & ~(whole - 1)


def weight_tag(params):
    """What comes back with weights: where they belong. Bytes are counted from the beginning of ``word``."""
    span = 16 * params.lanes
    return data.StructLayout(
        {
            "slave": range(max(2, params.conv.slaves)),
            "word": range(params.words),  # the first one
            "begin": range(span),  # first byte to be written
            "end": range(span + 1),  # behind the last one
            "bytes": range(span + 1),  # of a quarter that are complete with this answer; 0: others are still to come
        }
    )


def weight_queues(params):
    """Queues of answers: as many as an answer has words, or as there are slaves."""
    return min(params.conv.slaves, params.lanes // params.row_slots)


class WeightLoader(wiring.Component):
    """Asks for the weights of all slaves, in the order in which they are multiplied (docs/conv.md, "Who gets what").

    A *run* is one kernel position of a channel, or several that are merged: its bytes adjoin in shared memory, and so
    do its rows in a slave's memory, the last one filled up. Of floats it is one block of that, and the next run is that
    of the next kernel position (docs/conv.md, "Order of sums"). A run is cut at multiples of what a request brings; of
    each piece all channels of the pass follow each other, and then the bytes are complete in all slaves. Without
    ``stays`` the rows of a pass come again for each tile.

    Throughput: a request of up to 16 · lanes bytes a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Constant from the cycle of ``start`` on while ``busy``.
    start : In(1)
        Strobe, while not ``busy``. What the job before it has asked for may be under way, and be needed.
    busy : Out(1)
        From the cycle after ``start`` until the last request has been taken. Not in lane-private mode.
    came : Out(1)
        All that has been asked for has come: unless ``busy``, all of K has been read.
    o : Out(stream of GatherLayout)
    tile : In(stream of unsigned(1))
        A tile needs the rows of the pass; 1: the next one is of the next pass. Not if weights stay.
    begins : Out(1)
        Strobe: all answers of earlier jobs have left ``WeightWriter``, and the first weights of this job begin with the
        next word.
    freed : In(ring_shape(params))
        Bytes of a quarter of a slave's memory, once round more than it has: from where on they are needed.
    answered : In(range(weight_queues(params) + 1))
        So many answers have been written.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "busy": Out(1),
                "came": Out(1),
                "begins": Out(1),
                "o": Out(stream.Signature(GatherLayout(params, weight_tag(params)))),
                "tile": In(stream.Signature(1)),
                "freed": In(ring_shape(params)),
                "answered": In(range(weight_queues(params) + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv, plan = self._params, self._params.conv, self.plan
        span = 16 * params.lanes
        address = unsigned(params.smem.addr_width)

        # What is loaded next: counters from the outermost to the innermost.
        passes = Signal(params.pixel_width)
        first_channel = Signal(17)  # of the pass
        kernel_row, step = Signal(8), Signal(8)
        pass_place, row_place, step_place = (
            Signal(address),
            Signal(address),
            Signal(address),
        )  # in the pass's first channel
        rest, valid_rest = (
            Signal(params.pixel_width + 1),
            Signal(params.pixel_width + 1),
        )  # of the run, and of what is read
        place = Signal(address)  # of the request's piece, in the channel
        target = Signal(ring_shape(params))

        # The piece: how many bytes, and which ones are read. Constant for all channels.
        begin, length = Signal(range(span)), Signal(range(span + 1))
        read = Signal(range(span + 1))
        used = Signal(ring_shape(params))  # of a quarter; more than it has, where a job begins with a whole word
        m.d.comb += [
            begin.eq(target[: exact_log2(span)]),
            length.eq(Mux(rest > span - begin, span - begin, rest)),
            read.eq(Mux(valid_rest > length, length, valid_rest)),
            used.eq(target - self.freed),
        ]
        channels = CHANNELS_AT_ONCE * conv.slaves
        left = Signal(17)  # channels from the pass's first one on, less one
        last_channel = Signal(range(channels))
        m.d.comb += [
            left.eq(plan.out_channels - 1 - first_channel),
            last_channel.eq(Mux(left >= channels, channels - 1, left)),
        ]

        # Requests leave from registers; so many answers have room.
        under_way = Signal(range(_UNDER_WAY + 1))
        channel, channel_place = Signal(range(channels)), Signal(address)
        request = self.o.payload
        word = Signal(range(params.quarter_bytes // conv.row_bytes))
        can_leave = Signal()
        m.d.comb += [
            word.eq((target - begin) >> exact_log2(conv.row_bytes)),
            can_leave.eq(~self.o.valid | self.o.ready),
            self.came.eq(under_way == 0),
        ]
        leaves = Signal()
        m.d.sync += under_way.eq(under_way + leaves - self.answered)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        by_blocks = float_flag(params, plan, "floats")
        number, block = Signal(params.pixel_width), Signal(params.pixel_width)  # of the run; its first byte
        block_bytes, run_bytes = Signal(8), Signal(params.pixel_width + 1)
        m.d.comb += [
            block_bytes.eq(1 << plan.granularity),
            run_bytes.eq(Mux(by_blocks, block_bytes, (plan.last_block + 1) << plan.granularity)),
        ]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE") | self.o.valid)
            with m.State("IDLE"):
                m.d.sync += [passes.eq(0), first_channel.eq(0), pass_place.eq(plan.k)]
                with m.If(self.start & ~plan.lanes):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                with m.If(self.came):
                    m.d.comb += self.begins.eq(1)
                    m.d.sync += target.eq(next_word(params, target))
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.sync += [kernel_row.eq(0), step.eq(0), row_place.eq(pass_place), step_place.eq(pass_place)]
                # The writer counts on passes of fewer channels to find nothing of the pass before.
                settled = (last_channel == channels - 1) | self.came
                with m.If(plan.stays):
                    with m.If(settled):
                        m.next = "RUN"
                with m.Else():
                    m.d.comb += self.tile.ready.eq(settled)
                    again = Signal()
                    m.d.sync += again.eq(~self.tile.payload)
                    with m.If(self.tile.valid & settled):
                        m.next = "RUN"
            with m.State("RUN"):
                pixel = Mux(step == plan.last_step, plan.last_bytes, plan.pixel_bytes)
                m.d.sync += [place.eq(step_place), rest.eq(run_bytes), valid_rest.eq(pixel)]
                if params.floats:
                    with m.If(by_blocks):
                        m.d.sync += [
                            place.eq(step_place + block),
                            valid_rest.eq(Mux(pixel > block, pixel - block, 0)),
                        ]
                m.next = "PIECE"
            with m.State("PIECE"):
                m.d.sync += [channel.eq(0), channel_place.eq(place - begin)]
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
                        *(piece.address.eq(channel_place + 16 * lane) for lane, piece in enumerate(request.pieces)),
                        channel.eq(channel + 1),
                        channel_place.eq(channel_place + plan.k_pitch),
                    ]
                    with m.If(last):
                        m.next = "NEXT"
            with m.State("NEXT"):
                # ``channel_place`` is that of the channel behind the last one.
                m.d.sync += [
                    target.eq(target + length),
                    place.eq(place + length),
                    rest.eq(rest - length),
                    valid_rest.eq(valid_rest - read),
                ]
                m.next = "PIECE"
                with m.If(rest == length):
                    m.next = "RUN"
                    m.d.sync += [step.eq(step + 1), step_place.eq(step_place + plan.k_step)]
                    with m.If((step == plan.last_step) & by_blocks & (number != plan.last_block)):
                        m.d.sync += [step.eq(0), step_place.eq(row_place)]
                        m.d.sync += [number.eq(number + 1), block.eq(block + block_bytes)]
                    with m.Elif(step == plan.last_step):
                        following = row_place + plan.k_row
                        m.d.sync += [step.eq(0), kernel_row.eq(kernel_row + 1), number.eq(0), block.eq(0)]
                        m.d.sync += [row_place.eq(following), step_place.eq(following)]
                        with m.If(kernel_row == plan.last_kernel_row):
                            m.next = "PASS"
                            with m.If(plan.stays | ~again):
                                m.d.sync += [
                                    passes.eq(passes + 1),
                                    first_channel.eq(first_channel + channels),
                                    pass_place.eq(pass_place + (plan.k_pitch << exact_log2(channels))),
                                ]
                                with m.If(passes == plan.last_pass):
                                    m.next = "IDLE"
        m.d.comb += request.size.eq(4)
        m.d.comb += request.fill.eq(plan.k_fill)
        return m

    def _ranges(self, request, begin, read):
        """Which bytes of each piece are read, if they begin at ``begin`` of the first one."""
        assigns, end = [], begin + read
        for lane, piece in enumerate(request.pieces):
            assigns += [
                piece.low.eq(Mux(begin > 16 * lane, Mux(begin > 16 * lane + 16, 16, begin - 16 * lane), 0)),
                piece.high.eq(Mux(end > 16 * lane, Mux(end > 16 * lane + 16, 16, end - 16 * lane), 0)),
            ]
        return assigns


class WeightWriter(wiring.Component):
    """Writes gathered weights into the memories of the slaves, as many bytes a cycle as are gathered.

    An answer has several words of one slave, and a slave's memory takes one a cycle. So there are as many queues as an
    answer has words: slave s is served by the queue of its number modulo those, and successive answers are of
    successive slaves, from slave 0 on. A piece ends with the answer of its last channel: its queue has had as many
    answers of the piece as any other, and has had them last, so all are written when that is. It must begin with empty
    queues if it has other channels than the piece before.

    Latency: 2 cycles. Throughput: a word a cycle for each queue; what is under way has room in each.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    begins : In(1)
        Strobe: a job begins, with the next word of a quarter; all answers have left.
    i : In(stream of GatheredLayout(params, weight_tag(params)), always ready)
    answered : Out(range(weight_queues(params) + 1))
        So many answers have left.
    writes : Out(array of params.conv.slaves WordWriteLayout(params))
        Registered.
    written : Out(ring_shape(params))
        Bytes of a quarter that are complete in all slaves, once round more than it has: they can be read.
    """

    def __init__(self, params):
        self._params = params
        self._queues = weight_queues(params)
        super().__init__(
            {
                "begins": In(1),
                "i": In(stream.Signature(GatheredLayout(params, weight_tag(params)), always_ready=True)),
                "answered": Out(range(self._queues + 1)),
                "writes": Out(data.ArrayLayout(WordWriteLayout(params), params.conv.slaves)),
                "written": Out(ring_shape(params)),
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
        # Two pieces are never complete in one cycle: the last answers of both are in the same queue.
        after = Signal.like(self.written)
        m.d.comb += after.eq(self.written + reduce(or_, complete))
        m.d.sync += self.written.eq(Mux(self.begins, next_word(params, after), after))
        return m

    def _serve(self, m, number, answered):
        """A queue, and the words of its answers one after the other; the tag of the oldest one."""
        params, conv = self._params, self._params.conv
        shape = GatheredLayout(params, weight_tag(params))
        queue = m.submodules[f"queue{number}"] = ShallowQueue(shape, _UNDER_WAY)
        mine = self.i.payload.tag.slave & (self._queues - 1) == number
        m.d.comb += [queue.i.valid.eq(self.i.valid & mine), queue.i.payload.eq(self.i.payload)]
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
