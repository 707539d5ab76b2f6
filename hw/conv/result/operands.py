"""The table loader: biases and scales of the channels of a pass, arranged as transfers need them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import ConvOutput

from ...lib.logic import chosen
from ..layouts import BiasesLayout, GatheredLayout, GatherLayout, PlanLayout
from .layouts import GroupPlaceLayout, ResultSizes, both_places

__all__ = ["AddendReader", "AddendTagLayout", "TableLoader", "TableTagLayout", "adds"]

_ENTRY_BYTES = 8


class TableTagLayout(data.StructLayout):
    """Where an answer goes."""

    def __init__(self, params):
        super().__init__(
            {
                "row": range(2 * ResultSizes(params).steps),
                "part": range(max(1, params.conv.results // params.lanes)),
                "last": 1,  # of the pass
            }
        )


class TableLoader(wiring.Component):
    """Brings the entries of the table, pass by pass, into one of two halves of a memory, ahead of the read-out.

    A row of the memory has R columns, an entry for each result of a transfer. Channels that come several times in a
    transfer, for several places, lie in several columns: an answer is written to all of them. So the columns need no
    choice: column r takes piece r modulo the pieces of a request, which is asked for the channel that belongs there.
    Channels from Co on are not read, and their columns have anything.

    A request brings up to 8 entries; one a cycle while a half is free.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold from ``start`` until the last pass is loaded.
    start : In(1)
        Strobe: a job begins. All halves are free.
    request : Out(stream of GatherLayout(params, TableTagLayout(params)))
        Pieces of 8 bytes.
    answer : In(GatheredLayout(params, TableTagLayout(params)))
    answer_stb : In(1)
        An answer, which is always taken. In order.
    loaded : Out(1)
        The oldest pass that has not been released is loaded.
    release : In(1)
        Strobe: nothing of the oldest pass is read from the fourth cycle behind this one on.
    row : In(range(2 * ResultSizes(params).steps))
        Row that is read; the upper half of them is that of passes 1, 3, ….
    bias : Out(array of params.conv.results 32)
        Of ``row``, combinational.
    scale : Out(array of params.conv.results 32)
        The same.
    biases : Out(BiasesLayout(params)) if params.floats
        Those of an answer, for the array.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        results = params.conv.results
        tag = TableTagLayout(params)
        self.memory = Memory(shape=data.ArrayLayout(64, results), depth=2 * self._sizes.steps, init=[])
        self.free = Signal(2)  # halves into which nothing is loaded, nor will be
        self.waiting = Signal(2)  # loaded ones that have not been released
        super().__init__(
            ({"biases": Out(BiasesLayout(params))} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "request": Out(stream.Signature(GatherLayout(params, tag))),
                "answer": In(GatheredLayout(params, tag)),
                "answer_stb": In(1),
                "loaded": Out(1),
                "release": In(1),
                "row": In(range(2 * self._sizes.steps)),
                "bias": Out(data.ArrayLayout(32, results)),
                "scale": Out(data.ArrayLayout(32, results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read = self.memory.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(self.row),
            *(Cat(self.bias[n], self.scale[n]).eq(read.data[n]) for n in range(self._params.conv.results)),
            self.loaded.eq(self.waiting != 0),
        ]
        span_last, distinct = Signal(range(self._sizes.most_channels)), Signal(3)
        self._pass(m, span_last, distinct)
        requested = self._ask(m, span_last, distinct)
        self._store(m, distinct)

        releases = Signal(4)
        m.d.sync += [
            releases.eq(Cat(self.release, releases)),
            self.waiting.eq(self.waiting + (self.answer_stb & self.answer.tag.last) - self.release),
            self.free.eq(self.free + releases[-1] - requested),
        ]
        with m.If(self.start):
            m.d.sync += [self.free.eq(2), releases.eq(0)]
        return m

    def _pass(self, m, span_last, distinct):
        """Channels of a whole pass, less one, and log2 of those that differ in a transfer."""
        plan, conv = self.plan, self._params.conv
        elements = Signal(range(8))
        m.d.comb += elements.eq(plan.granularity - plan.wide)
        with m.If(plan.lanes):
            results = exact_log2(conv.results)
            m.d.comb += [
                span_last.eq((1 << elements) - 1),
                distinct.eq(Mux(elements < results, elements, results)),
            ]
        with m.Else():
            m.d.comb += [
                span_last.eq(self._sizes.pass_channels - 1),
                distinct.eq(exact_log2(min(conv.results, conv.slaves))),
            ]

    def _ask(self, m, span_last, distinct):
        """Requests of all passes; whether that is the last one of a pass."""
        plan, request, params = self.plan, self.request, self._params
        many = min(params.lanes, params.conv.results)  # pieces of a request
        going, half = Signal(), Signal()
        address = Signal(params.smem.addr_width)  # of the first entry of the request
        behind = Signal(16)  # channels of the job behind the first one of the pass
        offset, last = Signal.like(span_last), Signal.like(span_last)  # channel in the pass, and last one of it
        pieces, pass_over = Signal(range(many)), Signal()  # different pieces of a request, less one
        is_final = Signal()
        m.d.comb += [
            is_final.eq(behind <= span_last),
            last.eq(Mux(is_final, behind, span_last)),
            pieces.eq((1 << distinct) - 1),
            pass_over.eq((offset | pieces) >= last),
            request.valid.eq(going & (self.free != 0)),
            request.p.size.eq(exact_log2(_ENTRY_BYTES)),
            request.p.tag.row.eq(Cat((offset >> distinct)[: exact_log2(self._sizes.steps)], half)),
            request.p.tag.part.eq((offset & ((1 << distinct) - 1)) >> exact_log2(many)),
            request.p.tag.last.eq(pass_over),
        ]
        for number in range(many):
            ours = number & pieces
            piece = request.p.pieces[number]
            m.d.comb += [
                piece.address.eq(address + (ours << exact_log2(_ENTRY_BYTES))),
                piece.high.eq(Mux((offset | ours) <= last, _ENTRY_BYTES, 0)),
            ]
        taken = Signal()
        m.d.comb += taken.eq(request.valid & request.ready)
        with m.If(taken):
            m.d.sync += [
                address.eq(address + _ENTRY_BYTES + (pieces << exact_log2(_ENTRY_BYTES))),
                offset.eq(offset + pieces + 1),
            ]
            with m.If(pass_over):
                m.d.sync += [offset.eq(0), half.eq(~half), behind.eq(behind - span_last - 1), going.eq(~is_final)]
        with m.If(self.start):
            m.d.sync += [
                going.eq(plan.table),
                half.eq(0),
                address.eq(plan.table_address),
                behind.eq(plan.out_channels - 1),
            ]
        return taken & pass_over

    def _store(self, m, distinct):
        """Writes an answer to all columns that it is for."""
        write = self.memory.write_port(granularity=1)
        results, many = self._params.conv.results, min(self._params.lanes, self._params.conv.results)
        entries = Cat(self.answer.data)
        m.d.comb += write.addr.eq(self.answer.tag.row)
        for column in range(results):
            part = (column & ((1 << distinct) - 1)) >> exact_log2(many)
            m.d.comb += [
                write.data[column].eq(entries.word_select(column % many, 64)),
                write.en[column].eq(self.answer_stb & (self.answer.tag.part == part)),
            ]
        if self._params.floats:
            tag, steps = self.answer.tag, exact_log2(self._sizes.steps)
            m.d.comb += [
                self.biases.valid.eq(self.answer_stb),
                self.biases.half.eq(tag.row[steps]),
                self.biases.channel.eq((tag.row[:steps] << distinct) | tag.part << exact_log2(many)),
                *(bias.eq(entries.word_select(n, 64)) for n, bias in enumerate(self.biases.entries)),
            ]


#: Groups whose addends are under way or wait.
_GROUPS = 16
_PIECE_BYTES = 16


def adds(plan):
    """Whether a job adds a second operand."""
    output = plan.post.output
    return plan.post.add & ((output == ConvOutput.U8) | (output == ConvOutput.S8))


class AddendTagLayout(data.StructLayout):
    """Where an answer goes."""

    def __init__(self, params):
        super().__init__(
            {
                "group": range(_GROUPS),
                "part": range(_most_parts(params)),
                "last": 1,  # of its group
            }
        )


def _group_bytes(params):
    sizes = ResultSizes(params)
    return max(sizes.together * sizes.pass_channels, params.conv.row_bytes)


def _most_parts(params):
    """Requests of a group at most: as its places have pieces, or as it has places."""
    pieces = max(_group_bytes(params) // _PIECE_BYTES, min(params.folds, params.conv.results))
    return max(1, pieces // params.lanes)


class AddendReader(wiring.Component):
    """Asks for the elements of the second operand that belong to the places of groups, and gives them to transfers.

    A group is asked for at once, all channels of the pass, in pieces of up to 16 bytes; a place takes a cycle, or one
    for each ``lanes`` of its pieces, also of two that come together. What comes lies in a memory, place behind place.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold while places come. If nothing is to be added they are taken and dropped.
    i : In(stream of GroupPlaceLayout(params))
    request : Out(stream of GatherLayout(params, AddendTagLayout(params)))
        Registered.
    answer : In(GatheredLayout(params, AddendTagLayout(params)))
    answer_stb : In(1)
        An answer, which is always taken. In order.
    loaded : Out(1)
        The addends of the oldest group that has not been released are there.
    release : In(1)
        Strobe: nothing of the oldest group is read from the fourth cycle behind this one on.
    group : In(range(16))
        Number of the group that is read: they are counted.
    step : In(range(ResultSizes(params).steps))
        Which transfer of it.
    addend : Out(array of params.conv.results 8)
        Combinational.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self._bytes = _group_bytes(params)
        tag, results = AddendTagLayout(params), params.conv.results
        self.memory = Memory(shape=data.ArrayLayout(8, self._bytes), depth=_GROUPS, init=[])
        self.used = Signal(range(_GROUPS + 1))  # groups that are asked for, or wait
        self.waiting = Signal(range(_GROUPS + 1))  # that are there and have not been released
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                "request": Out(stream.Signature(GatherLayout(params, tag))),
                "answer": In(GatheredLayout(params, tag)),
                "answer_stb": In(1),
                "loaded": Out(1),
                "release": In(1),
                "group": In(range(_GROUPS)),
                "step": In(range(self._sizes.steps)),
                "addend": Out(data.ArrayLayout(8, results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        elements, size = Signal(range(10)), Signal(3)  # log2 of the elements of a place, and of those of a piece
        m.d.comb += [
            elements.eq(
                Mux(self.plan.lanes, self.plan.granularity - self.plan.wide, exact_log2(self._sizes.pass_channels))
            ),
            size.eq(Mux(elements < exact_log2(_PIECE_BYTES), elements, exact_log2(_PIECE_BYTES))),
        ]
        begun = self._ask(m, elements, size)
        self._store(m, size)
        self._give(m)
        releases = Signal(4)
        m.d.sync += [
            releases.eq(Cat(self.release, releases)),
            self.used.eq(self.used + begun - releases[-1]),
            self.waiting.eq(self.waiting + (self.answer_stb & self.answer.tag.last) - self.release),
        ]
        m.d.comb += self.loaded.eq(self.waiting != 0)
        return m

    def _ask(self, m, elements, size):
        """Adds the pieces of a place to the request; whether a group begins to be asked for."""
        i, request, lanes = self.i, self.request, self._params.lanes
        in_place = max(1, self._sizes.most_channels // _PIECE_BYTES)  # pieces of a place at most
        pieces = Signal(range(in_place))  # of a place, less one
        at_once = Signal(range(lanes))  # pieces of a place in a request, less one
        piece = Signal(range(in_place))  # of the place, the first one of this cycle
        position = Signal(range(lanes))  # of the request, likewise
        group, part, fresh = Signal(range(_GROUPS)), Signal(range(_most_parts(self._params))), Signal(init=1)
        step, place_over, group_over, full = Signal(), Signal(), Signal(), Signal()
        over, second = Signal(), Signal()  # all that came together is asked for; this is the second place of it
        addend = i.p.addend + Mux(second, self.plan.addend.point, 0)
        wanted = i.p.there & adds(self.plan)
        m.d.comb += [
            pieces.eq((1 << elements >> exact_log2(_PIECE_BYTES)) - (elements >= exact_log2(_PIECE_BYTES))),
            at_once.eq(pieces),
            step.eq(i.valid & i.p.any & adds(self.plan) & ~self.used[-1] & (~request.valid | request.ready)),
            place_over.eq((piece | at_once) == pieces),
            over.eq(place_over & (second | ~both_places(self._sizes, i.p))),
            group_over.eq(over & i.p.group_last),
            full.eq((position | at_once) == lanes - 1),
            i.ready.eq(Mux(i.p.any & adds(self.plan), step & over, 1)),
        ]
        with m.If(request.ready):
            m.d.sync += request.valid.eq(0)
        # The last place of a group that is there is not known as such: requests that are full go, and with the group
        # what there is, be it nothing but the sign that it is the last.
        with m.If(step):
            m.d.sync += [
                request.valid.eq(full | group_over),
                request.p.size.eq(size),
                request.p.tag.group.eq(group),
                request.p.tag.part.eq(part),
                request.p.tag.last.eq(group_over),
                piece.eq(Mux(place_over, 0, piece + at_once + 1)),
                position.eq(Mux(full | group_over, 0, position + at_once + 1)),
                part.eq(Mux(group_over, 0, part + full)),
                fresh.eq(full | group_over),
                second.eq(place_over & ~over),
                group.eq(group + group_over),
            ]
            for lane in range(lanes):
                number = piece | (lane & at_once)  # of the place
                asked, slot = number << exact_log2(_PIECE_BYTES), request.p.pieces[lane]
                with m.If((lane & ~at_once) == position):
                    m.d.sync += [
                        slot.address.eq(addend + asked),
                        slot.high.eq(Mux(wanted & (asked <= i.p.channels), 1 << size, 0)),
                    ]
                with m.Elif(fresh):
                    m.d.sync += slot.high.eq(0)
        return step & group_over

    def _store(self, m, size):
        """Writes an answer behind those before it."""
        write, answer, lanes = self.memory.write_port(granularity=1), self.answer, exact_log2(self._params.lanes)
        m.d.comb += write.addr.eq(answer.tag.group)
        places = min(self._params.folds, self._params.conv.results)
        packed = Cat(answer.data)
        for byte in range(self._bytes):
            # There are at most so many places, and of less than 16 bytes a piece is all of a place.
            sizes = [s for s in range(5) if s == 4 or byte < places << s]
            m.d.comb += [
                write.data[byte].eq(chosen(size, {s: packed.word_select(byte % (1 << s + lanes), 8) for s in sizes})),
                write.en[byte].eq(
                    self.answer_stb & chosen(size, {s: answer.tag.part == byte >> s + lanes for s in sizes})
                ),
            ]

    def _give(self, m):
        """The bytes of a transfer."""
        read, sizes, results = self.memory.read_port(domain="comb"), self._sizes, self._params.conv.results
        m.d.comb += read.addr.eq(self.group)
        ours = results // sizes.together
        for lane in range(results):
            place, channel = divmod(lane, ours)
            in_row = range(lane, self._bytes, results)
            in_tile = range(place * sizes.pass_channels + channel, (place + 1) * sizes.pass_channels, ours)
            of_row, of_tile = ({n: read.data[at] for n, at in enumerate(bytes_)} for bytes_ in (in_row, in_tile))
            m.d.comb += self.addend[lane].eq(
                Mux(self.plan.lanes, chosen(self.step, of_row), chosen(self.step, of_tile))
            )
