"""Weights on their way from shared memory to the slaves."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from ...lib.stream import ShallowQueue
from ..layouts import GatheredLayout, GatherLayout, PlanLayout, WordWriteLayout

__all__ = ["WeightLoader", "WeightWriter", "weight_tag"]

#: Requests under way: as many answers can wait for the memories.
_UNDER_WAY = 8


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


class WeightLoader(wiring.Component):
    """Asks for the weights of all slaves, in the order in which they are multiplied (docs/conv.md, "Who gets what").

    A *run* is one kernel position of a channel, or several that are merged: its bytes adjoin in shared memory, and so
    do its rows in a slave's memory, the last one filled up. A run is cut at multiples of what a request brings; of each
    piece all channels of the pass follow each other, and then the bytes are complete in all slaves. Without ``stays``
    the rows of a pass come again for each tile.

    Throughput: a request of up to 16 · lanes bytes a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
    start : In(1)
        Strobe: a job begins; ``plan`` is there, and nothing is under way.
    o : Out(stream of GatherLayout)
    tile : In(stream of unsigned(1))
        A tile needs the rows of the pass; 1: the next one is of the next pass. Not if weights stay.
    freed : In(range(params.conv.weight_bytes // 2))
        Bytes of a quarter of a slave's memory, once round more than it has: from where on they are needed.
    answered : In(1)
        Strobe: an answer has been written.
    """

    def __init__(self, params):
        self._params = params
        self.ring_bytes = params.conv.weight_bytes // CHANNELS_AT_ONCE
        ring = range(2 * self.ring_bytes)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "o": Out(stream.Signature(GatherLayout(params, weight_tag(params)))),
                "tile": In(stream.Signature(1)),
                "freed": In(ring),
                "answered": In(1),
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
        target = Signal(range(2 * self.ring_bytes))

        # The piece: how many bytes, and which ones are read. Constant for all channels.
        begin, length = Signal(range(span)), Signal(range(span + 1))
        read = Signal(range(span + 1))
        room = Signal(range(2 * self.ring_bytes))
        m.d.comb += [
            begin.eq(target[: exact_log2(span)]),
            length.eq(Mux(rest > span - begin, span - begin, rest)),
            read.eq(Mux(valid_rest > length, length, valid_rest)),
            room.eq(self.ring_bytes - (target - self.freed)[: len(target)]),
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
        word = Signal(range(self.ring_bytes // conv.row_bytes))
        can_leave = Signal()
        m.d.comb += [
            word.eq((target - begin) >> exact_log2(conv.row_bytes)),
            can_leave.eq(~self.o.valid | self.o.ready),
        ]
        leaves = Signal()
        m.d.sync += under_way.eq(under_way + leaves - self.answered)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        run_bytes = Signal(params.pixel_width + 1)
        m.d.comb += run_bytes.eq((plan.last_block + 1) << plan.granularity)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [passes.eq(0), first_channel.eq(0), pass_place.eq(plan.k), target.eq(0)]
                with m.If(self.start & ~plan.lanes):
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.sync += [kernel_row.eq(0), step.eq(0), row_place.eq(pass_place), step_place.eq(pass_place)]
                with m.If(plan.stays):
                    m.next = "RUN"
                with m.Else():
                    m.d.comb += self.tile.ready.eq(1)
                    again = Signal()
                    m.d.sync += again.eq(~self.tile.payload)
                    with m.If(self.tile.valid):
                        m.next = "RUN"
            with m.State("RUN"):
                last = step == plan.last_step
                m.d.sync += [
                    place.eq(step_place),
                    rest.eq(run_bytes),
                    valid_rest.eq(Mux(last, plan.last_bytes, plan.pixel_bytes)),
                ]
                m.next = "PIECE"
            with m.State("PIECE"):
                m.d.sync += [channel.eq(0), channel_place.eq(place - begin)]
                with m.If((room >= length) & can_leave):
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
                    with m.If(step == plan.last_step):
                        following = row_place + plan.k_row
                        m.d.sync += [step.eq(0), kernel_row.eq(kernel_row + 1)]
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
    """Writes gathered weights into the memories of the slaves, a word a cycle.

    Latency: 2 cycles. Throughput: a word a cycle; up to eight answers wait.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe: a job begins, with the first word of a quarter.
    i : In(stream of GatheredLayout(params, weight_tag(params)), always ready)
    answered : Out(1)
        Strobe: an answer has left.
    tag : Out(weight_tag(params))
        Its tag.
    writes : Out(array of params.conv.slaves WordWriteLayout(params))
        Registered.
    written : Out(range(params.conv.weight_bytes // 2))
        Bytes of a quarter that are complete in all slaves, once round more than it has: they can be read.
    """

    def __init__(self, params):
        self._params = params
        ring = range(2 * params.conv.weight_bytes // CHANNELS_AT_ONCE)
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(GatheredLayout(params, weight_tag(params)), always_ready=True)),
                "answered": Out(1),
                "tag": Out(weight_tag(params)),
                "writes": Out(data.ArrayLayout(WordWriteLayout(params), params.conv.slaves)),
                "written": Out(ring),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv = self._params, self._params.conv
        m.submodules.queue = queue = ShallowQueue(GatheredLayout(params, weight_tag(params)), _UNDER_WAY)
        m.d.comb += [queue.i.valid.eq(self.i.valid), queue.i.payload.eq(self.i.payload)]
        answer, tag = queue.o.payload, queue.o.payload.tag
        words = params.lanes // params.row_slots
        number = Signal(range(max(2, words)))
        place = Signal(range(max(2, words)))  # of the word in the answer
        bits = 8 * conv.row_bytes
        word, strobe = Signal(bits), Signal(conv.row_bytes)
        strobes = Signal(16 * params.lanes)
        last = Signal()
        m.d.comb += [
            place.eq((tag.begin >> exact_log2(conv.row_bytes)) + number),
            word.eq(answer.data.as_value().word_select(place, bits)),
            strobes.eq(((1 << tag.end) - 1) & ~((1 << tag.begin) - 1)),
            strobe.eq(strobes.word_select(place, conv.row_bytes)),
            last.eq((place + 1) << exact_log2(conv.row_bytes) >= tag.end),
            queue.o.ready.eq(last),
            self.answered.eq(queue.o.valid & last),
            self.tag.eq(tag),
        ]
        complete = Signal(range(16 * params.lanes + 1))
        m.d.sync += complete.eq(Mux(self.answered, tag.bytes, 0))
        m.d.sync += self.written.eq(Mux(self.start, 0, self.written + complete))
        with m.If(queue.o.valid):
            m.d.sync += number.eq(Mux(last, 0, number + 1))
        for slave, write in enumerate(self.writes):
            m.d.sync += [
                write.word.eq(tag.word + place),
                write.data.eq(word),
                write.strobe.eq(Mux(queue.o.valid & (tag.slave == slave), strobe, 0)),
            ]
        return m
