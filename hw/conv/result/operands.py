"""The operands of transfers: biases and scales of channels, and elements of the second operand."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import FUNCTION_BYTES, ConvOutput

from ...lib.logic import mux_tree
from ..layouts import BiasesLayout, GatheredLayout, GatherLayout, PlanLayout
from ..params import FOLDS
from .function import FunctionRowLayout
from .layouts import GroupPlaceLayout, ResultSizes, both_places

__all__ = ["AddendReader", "AddendTagLayout", "TableLoader", "TableTagLayout", "adds"]

_ENTRY_BYTES = 8
_PIECE_BYTES = 16
#: Groups whose addends are requested or have not been used.
_GROUPS = 16


class TableTagLayout(data.StructLayout):
    """The destination of biases and scales."""

    def __init__(self, params):
        super().__init__(
            {
                "row": range(2 * ResultSizes(params).steps),
                "part": range(max(1, params.conv.results // params.lanes)),
                "last": 1,  # of the pass
                **({"function": 1} if params.functions else {}),  # it is a row of the LUT
            }
        )


class TableLoader(wiring.Component):
    """Loads the table's entries, a bias and a scale for each channel, ahead of the read-out: those of successive passes
    into the two halves of a memory alternately.

    A row of the memory has R columns, an entry for each result of a transfer. If a transfer has a channel several
    times, for several places, its entry is written to several columns. Column r always receives piece r modulo the
    pieces of a request, which is requested for the channel of that column, so that no column needs a multiplexer.
    Channels from Co on are not read, and their columns are undefined.

    A request has up to 8 entries; one a cycle while a half is free.

    After the first pass, or at once if there is no table, the LUT of a function is requested, a row of 16 bytes a
    cycle. Its rows are loaded while the first results are post-processed.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        results = params.conv.results
        tag = TableTagLayout(params)
        self.memory = Memory(shape=data.ArrayLayout(64, results), depth=2 * self._sizes.steps, init=[])
        self.free = Signal(2)  # halves that nothing has been requested for
        self.waiting = Signal(2)  # halves that are loaded and not released
        super().__init__(
            # The biases of an answer, for the array.
            ({"biases": Out(BiasesLayout(params))} if params.floats else {})
            | ({"function_row": Out(FunctionRowLayout())} if params.functions else {})
            | {
                "plan": In(PlanLayout(params)),  # constant from ``start`` until the last pass is loaded
                "start": In(1),  # Strobe: a job begins; all halves are free.
                "request": Out(stream.Signature(GatherLayout(params, tag))),  # pieces of 8 bytes
                "answer": In(stream.Signature(GatheredLayout(params, tag), always_ready=True)),  # in order
                "loaded": Out(1),  # the oldest pass that has not been released is loaded
                # Strobe: the oldest pass is read for three more cycles at most.
                "release": In(1),
                # Row that is read; passes 1, 3, … are in the upper half.
                "row": In(range(2 * self._sizes.steps)),
                "bias": Out(data.ArrayLayout(32, results)),  # both combinational from ``row``
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
        is_lut = Signal()  # a row of the LUT is requested
        requested = self._ask(m, span_last, distinct, is_lut)
        if self._params.functions:
            self._ask_function(m, requested, is_lut)
        self._store(m, distinct)

        releases = Signal(4)
        m.d.sync += [
            releases.eq(Cat(self.release, releases)),
            self.waiting.eq(self.waiting + (self.answer.valid & self.answer.payload.tag.last) - self.release),
            self.free.eq(self.free + releases[-1] - requested),
        ]
        with m.If(self.start):
            m.d.sync += [self.free.eq(2), releases.eq(0)]
        return m

    def _pass(self, m, span_last, distinct):
        """Channels of a full pass, minus one, and log2 of the distinct channels of a transfer."""
        plan, conv = self.plan, self._params.conv
        elements = Signal(range(8))
        m.d.comb += elements.eq(plan.granularity - plan.wide)
        with m.If(plan.lanes):
            results = exact_log2(conv.results)
            m.d.comb += [span_last.eq((1 << elements) - 1), distinct.eq(Mux(elements < results, elements, results))]
        with m.Else():
            m.d.comb += [
                span_last.eq(self._sizes.pass_channels - 1),
                distinct.eq(exact_log2(min(conv.results, conv.slaves))),
            ]

    def _ask(self, m, span_last, distinct, is_lut):
        """Requests the entries of all passes. Returns whether the last request of a pass leaves."""
        plan, request, params = self.plan, self.request, self._params
        count = min(params.lanes, params.conv.results)  # pieces of a request
        active, half = Signal(), Signal()
        address = Signal(params.smem.addr_width)  # of the first entry of the request
        channels_left = Signal(16)  # channels of the job after the pass's first one
        offset, last = Signal.like(span_last), Signal.like(span_last)  # channel in the pass, and the pass's last one
        pieces, pass_over = Signal(range(count)), Signal()  # distinct pieces of a request, minus one
        is_final = Signal()
        m.d.comb += [
            is_final.eq(channels_left <= span_last),
            last.eq(Mux(is_final, channels_left, span_last)),
            pieces.eq((1 << distinct) - 1),
            pass_over.eq((offset | pieces) >= last),
            request.valid.eq((active & (self.free != 0)) | is_lut),
            request.payload.size.eq(exact_log2(_ENTRY_BYTES)),
            request.payload.tag.row.eq(Cat((offset >> distinct)[: exact_log2(self._sizes.steps)], half)),
            request.payload.tag.part.eq((offset & ((1 << distinct) - 1)) >> exact_log2(count)),
            request.payload.tag.last.eq(pass_over),
        ]
        for number, piece in enumerate(list(request.payload.pieces)[:count]):
            entry = number & pieces
            m.d.comb += [
                piece.address.eq(address + (entry << exact_log2(_ENTRY_BYTES))),
                piece.high.eq(Mux((offset | entry) <= last, _ENTRY_BYTES, 0)),
            ]
        accepted = request.valid & request.ready & ~is_lut
        with m.If(accepted):
            m.d.sync += [
                address.eq(address + _ENTRY_BYTES + (pieces << exact_log2(_ENTRY_BYTES))),
                offset.eq(offset + pieces + 1),
            ]
            with m.If(pass_over):
                m.d.sync += [offset.eq(0), half.eq(~half), active.eq(~is_final)]
                m.d.sync += channels_left.eq(channels_left - span_last - 1)
        with m.If(self.start):
            m.d.sync += [
                active.eq(plan.table),
                half.eq(0),
                address.eq(plan.table_address),
                channels_left.eq(plan.out_channels - 1),
            ]
        return accepted & pass_over

    def _ask_function(self, m, requested, is_lut):
        """Requests the rows of the LUT, and forwards them."""
        plan, request, answer = self.plan, self.request, self.answer
        owed, turn = Signal(), Signal()  # rows remain to be requested; the first pass has been requested
        address = Signal(self._params.smem.addr_width)
        m.d.comb += [
            is_lut.eq(owed & turn),
            self.function_row.valid.eq(answer.valid & answer.payload.tag.function),
            self.function_row.bytes.eq(answer.payload.data[0]),
        ]
        with m.If(is_lut):
            m.d.comb += [
                request.payload.size.eq(exact_log2(_PIECE_BYTES)),
                request.payload.tag.last.eq(0),
                request.payload.tag.function.eq(1),
                *(piece.high.eq(0) for piece in list(request.payload.pieces)[1:]),
                request.payload.pieces[0].address.eq(address),
                request.payload.pieces[0].high.eq(_PIECE_BYTES),
            ]
        row = Signal(range(FUNCTION_BYTES // _PIECE_BYTES))
        with m.If(is_lut & request.ready):
            m.d.sync += [address.eq(address + _PIECE_BYTES), row.eq(row + 1), owed.eq(~row.all())]
        with m.If(requested):
            m.d.sync += turn.eq(1)
        with m.If(self.start):
            m.d.sync += [
                owed.eq(plan.post.function),
                turn.eq(~plan.table),
                row.eq(0),
                address.eq(plan.function_address),
            ]

    def _store(self, m, distinct):
        """Writes an answer to all columns for which it is."""
        write, tag, valid = self.memory.write_port(granularity=1), self.answer.payload.tag, self.answer.valid
        if self._params.functions:
            valid &= ~tag.function
        results, count = self._params.conv.results, min(self._params.lanes, self._params.conv.results)
        entries = Cat(self.answer.payload.data)
        m.d.comb += write.addr.eq(tag.row)
        for column in range(results):
            part = (column & ((1 << distinct) - 1)) >> exact_log2(count)
            m.d.comb += [
                write.data[column].eq(entries.word_select(column % count, 64)),
                write.en[column].eq(valid & (tag.part == part)),
            ]
        if self._params.floats:
            steps = exact_log2(self._sizes.steps)
            m.d.comb += [
                self.biases.valid.eq(valid),
                self.biases.half.eq(tag.row[steps]),
                self.biases.channel.eq((tag.row[:steps] << distinct) | tag.part << exact_log2(count)),
                *(bias.eq(entries.word_select(n, 64)) for n, bias in enumerate(self.biases.entries)),
            ]


def adds(plan):
    """Whether a job adds a second operand."""
    output = plan.post.output
    return plan.post.add & ((output == ConvOutput.U8) | (output == ConvOutput.S8))


class AddendTagLayout(data.StructLayout):
    """The destination of addends."""

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
    """The most requests of a group: it has at least a piece for each place, and enough for its bytes."""
    pieces = max(_group_bytes(params) // _PIECE_BYTES, min(FOLDS, params.conv.results))
    return max(1, pieces // params.lanes)


class AddendReader(wiring.Component):
    """Requests the elements of the second operand for the places of groups, and provides them to transfers.

    All channels of the pass are requested for a group, in pieces of up to 16 bytes. Each place, also of two that come
    together, takes a cycle for every ``lanes`` of its pieces. The memory holds the places of a group one after the
    other.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self._bytes = _group_bytes(params)
        tag, results = AddendTagLayout(params), params.conv.results
        self.memory = Memory(shape=data.ArrayLayout(8, self._bytes), depth=_GROUPS, init=[])
        self.used = Signal(range(_GROUPS + 1))  # groups that have been requested and not released
        self.waiting = Signal(range(_GROUPS + 1))  # those of them that are loaded
        super().__init__(
            {
                # Constant while places arrive. If nothing is added they are dropped.
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                "request": Out(stream.Signature(GatherLayout(params, tag))),  # registered
                "answer": In(stream.Signature(GatheredLayout(params, tag), always_ready=True)),  # in order
                "loaded": Out(1),  # the oldest group that has not been released is loaded
                # Strobe: the oldest group is read for three more cycles at most.
                "release": In(1),
                "group": In(range(_GROUPS)),  # the group that is read, counted modulo 16
                "step": In(range(self._sizes.steps)),  # the transfer of the group
                "addend": Out(data.ArrayLayout(8, results)),  # combinational
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
        requested = self._request(m, elements, size)
        self._store(m, size)
        self._read(m)
        releases = Signal(4)
        m.d.sync += [
            releases.eq(Cat(self.release, releases)),
            self.used.eq(self.used + requested - releases[-1]),
            self.waiting.eq(self.waiting + (self.answer.valid & self.answer.payload.tag.last) - self.release),
        ]
        m.d.comb += self.loaded.eq(self.waiting != 0)
        return m

    def _request(self, m, elements, size):
        """Adds the pieces of a place to the request. Returns whether a group is complete."""
        i, request, lanes = self.i, self.request, self._params.lanes
        most_pieces = max(1, self._sizes.most_channels // _PIECE_BYTES)
        pieces = Signal(range(most_pieces))  # of a place, minus one
        at_once = Signal(range(lanes))  # pieces of a place in a request, minus one
        piece = Signal(range(most_pieces))  # the first one of this cycle, in its place
        position = Signal(range(lanes))  # of that piece in the request
        group, part, fresh = Signal(range(_GROUPS)), Signal(range(_most_parts(self._params))), Signal(init=1)
        step, place_over, group_over, full = Signal(), Signal(), Signal(), Signal()
        over, second = Signal(), Signal()  # the payload is complete; this is its second place
        addend = i.payload.addend + Mux(second, self.plan.addend.point, 0)
        used = i.payload.any & adds(self.plan)
        m.d.comb += [
            pieces.eq((1 << elements >> exact_log2(_PIECE_BYTES)) - (elements >= exact_log2(_PIECE_BYTES))),
            at_once.eq(pieces),
            step.eq(i.valid & used & ~self.used[-1] & (~request.valid | request.ready)),
            place_over.eq((piece | at_once) == pieces),
            over.eq(place_over & (second | ~both_places(self._sizes, i.payload))),
            group_over.eq(over & i.payload.group_last),
            full.eq((position | at_once) == lanes - 1),
            i.ready.eq(Mux(used, step & over, 1)),
        ]
        with m.If(request.ready):
            m.d.sync += request.valid.eq(0)
        # It is not known which place is the last valid one of its group: a request leaves when it is full and at the
        # end of the group, then possibly with nothing but ``last``.
        with m.If(step):
            m.d.sync += [
                request.valid.eq(full | group_over),
                request.payload.size.eq(size),
                request.payload.tag.group.eq(group),
                request.payload.tag.part.eq(part),
                request.payload.tag.last.eq(group_over),
                piece.eq(Mux(place_over, 0, piece + at_once + 1)),
                position.eq(Mux(full | group_over, 0, position + at_once + 1)),
                part.eq(Mux(group_over, 0, part + full)),
                fresh.eq(full | group_over),
                second.eq(place_over & ~over),
                group.eq(group + group_over),
            ]
            for lane in range(lanes):
                offset = (piece | (lane & at_once)) << exact_log2(_PIECE_BYTES)  # in the place
                slot = request.payload.pieces[lane]
                with m.If((lane & ~at_once) == position):
                    reads = i.payload.there & adds(self.plan) & (offset <= i.payload.channels)
                    m.d.sync += [slot.address.eq(addend + offset), slot.high.eq(Mux(reads, 1 << size, 0))]
                with m.Elif(fresh):
                    m.d.sync += slot.high.eq(0)
        return step & group_over

    def _store(self, m, size):
        """Writes an answer after the previous ones of its group."""
        write, tag, lanes = (
            self.memory.write_port(granularity=1),
            self.answer.payload.tag,
            exact_log2(self._params.lanes),
        )
        m.d.comb += write.addr.eq(tag.group)
        places = min(FOLDS, self._params.conv.results)
        packed = Cat(self.answer.payload.data)
        for byte in range(self._bytes):
            # A piece of less than 16 bytes is a whole place, and the number of places is limited.
            sizes = [s for s in range(5) if s == 4 or byte < places << s]
            selected = mux_tree(size, {s: tag.part == byte >> s + lanes for s in sizes})
            m.d.comb += [
                write.data[byte].eq(mux_tree(size, {s: packed.word_select(byte % (1 << s + lanes), 8) for s in sizes})),
                write.en[byte].eq(self.answer.valid & selected),
            ]

    def _read(self, m):
        """Reads the bytes of a transfer."""
        read, sizes, results = self.memory.read_port(domain="comb"), self._sizes, self._params.conv.results
        m.d.comb += read.addr.eq(self.group)
        place_results = results // sizes.together
        for lane in range(results):
            place, channel = divmod(lane, place_results)
            in_lanes = range(lane, self._bytes, results)
            in_tile = range(place * sizes.pass_channels + channel, (place + 1) * sizes.pass_channels, place_results)
            of_lanes, of_tile = (
                mux_tree(self.step, {step: read.data[byte] for step, byte in enumerate(bytes_)})
                for bytes_ in (in_lanes, in_tile)
            )
            m.d.comb += self.addend[lane].eq(Mux(self.plan.lanes, of_lanes, of_tile))
