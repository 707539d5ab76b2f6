"""Setup of commands on blocks, descriptor fields and groups: rules, and one or two jobs per command.

Specification: docs/tmau.md, "Block copies".
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BLOCK, COMMAND_FIELD, DESCRIPTOR, GROUP, REPLACE, Element, Opcode, Reduction, Space
from tilewright.spec.cluster import ClusterError

from ...lib.layouts import command_layout, command_view
from ...smem.signatures import LoanSignature
from ..descriptor.layouts import FaultLayout
from ..jobs import BlockJobLayout
from ..layouts import ErrorLayout, WindowsLayout, owner_members, prefetch_members
from ..params import MAX_GROUPS
from .block_rules import FieldLocator, MeasuredLayout, PlaceLayout, block_rules
from .rules import named_owner, named_receivers

__all__ = ["BlockSetup"]

_FIELD_BYTES = 8  # bytes that a REPLACE reads and writes


class BlockSetup(wiring.Component):
    """Checks commands of the formats BLOCK, GROUP and REPLACE, makes their jobs, and holds waits until they may end.

    Latency 3, one command every other cycle; an end takes one cycle more. Stages: last bytes of the ranges and position
    of the field; rules; output. A command leaves as one job, as two jobs of which the first is quiet (REPLACE), or as
    an end. A command that reads another core's shared memory first asks that core and waits for its answer.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                # COPY_BLOCK, PREFETCH_BLOCK, COMMIT, WAIT, WAIT_ALL, or REPLACE with a valid descriptor address.
                "i": In(stream.Signature(command_layout())),
                "windows": In(WindowsLayout(params)),
                "jobs": Out(stream.Signature(BlockJobLayout(params))),
                # Commands that end here: refused ones, and with code NONE commands that move nothing.
                "finished": Out(stream.Signature(ErrorLayout(params))),
                "busy": Out(1),  # A command is being set up.
                "commit": Out(1),  # Strobe: a COMMIT ends.
                # Numbers of groups, which a WAIT compares with its own.
                "unfinished": In(range(MAX_GROUPS + 1)),
                "unread": In(range(MAX_GROUPS + 1)),
                "groups_full": In(1),  # A COMMIT must wait.
                "still": In(1),  # No transfer is in progress, so that a WAIT_ALL ends.
                **({"loans": Out(LoanSignature(params.smem, params.cores))} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        valid = Signal(3)
        leave = Signal()  # the command at the outputs leaves
        load = Signal(3)  # enables of the stages
        # Independent of ``leave``, because the next register accepts only one job every other cycle.
        free2 = ~valid[2]
        free1 = ~valid[1] | free2
        m.d.comb += [
            self.i.ready.eq(~valid[0] | free1),
            load.eq(Cat(self.i.ready, free1, free2)),
            self.busy.eq(valid.any()),
        ]
        for stage, before in enumerate((self.i.valid, valid[0], valid[1])):
            with m.If(load[stage]):
                m.d.sync += valid[stage].eq(before)
        first = self._measure(m, load[0])
        rules = block_rules(self._params, self.windows, first)
        second = self._judge(m, load[1], first, rules)
        third = self._choose(m, load[2], valid[1], second, rules)
        with m.If(leave):
            m.d.sync += [valid[2].eq(0), third.moves.eq(0)]
        self._send(m, valid[2], third, leave)
        return m

    def _measure(self, m, load):
        """First stage: the last bytes of both ranges, their distances, and the position of the field."""
        block = command_view(BLOCK, self.i.payload)
        replace = command_view(REPLACE, self.i.payload)
        layout = MeasuredLayout(self._params)
        first = Signal(layout)
        m.submodules.locator = locator = FieldLocator()
        m.d.comb += [locator.field.eq(replace.field), locator.index.eq(replace.index)]
        reach = Signal(signed(33))  # from the first byte to the last; a REPLACE has a descriptor as its source
        size, source, destination = (block[name][: layout.bits] for name in ("size", "source", "destination"))
        m.d.comb += reach.eq(Mux(self._replaces(block), DESCRIPTOR.bytes - 1, size - 1))
        with m.If(load):
            m.d.sync += [
                first.command.eq(self.i.payload),
                first.source_last.eq(source + reach),
                first.destination_last.eq(destination + reach),
                first.forward.eq((block.destination >> 4) - (block.source >> 4)),
                first.backward.eq((block.source >> 4) - (block.destination >> 4)),
                first.place.eq(locator.place),
            ]
        return first

    def _replaces(self, block):
        """Whether the command is a REPLACE. Without reductions an earlier block refuses it."""
        return (block.opcode == Opcode.REPLACE) & self._params.has("reductions_global")

    def _judge(self, m, load, first, rules):
        """Second stage: each rule separately."""
        second = Signal(
            data.StructLayout({"command": command_layout(), "place": PlaceLayout(), "broken": unsigned(len(rules))})
        )
        with m.If(load):
            m.d.sync += [
                second.command.eq(first.command),
                second.place.eq(first.place),
                second.broken.eq(Cat(condition for _, _, _, condition in rules)),
            ]
        return second

    def _choose(self, m, load, valid, second, rules):
        """Third stage: the first broken rule, and the numbers of the jobs."""
        block, replace, place = command_view(BLOCK, second.command), command_view(REPLACE, second.command), second.place
        third = Signal(
            data.StructLayout(
                {
                    "command": command_layout(),
                    "fault": FaultLayout(),
                    "moves": unsigned(1),  # the command is valid and has jobs
                    "twice": unsigned(1),  # two jobs
                    "loop": unsigned(1),  # within shared memory
                    "stage": unsigned(1),  # within global memory
                    **prefetch_members(self._params),  # it has a job, and then ends here
                    # The two jobs of a REPLACE:
                    "word": unsigned(self._params.addr_width),  # global address of the 64 bits that it changes
                    "keep": unsigned(64),  # mask of the bits that it does not change
                    "set": unsigned(64),  # mask of the bits that it sets
                    **owner_members(self._params),  # 0 if there are no jobs
                }
            )
        )
        fault, chosen = Signal(FaultLayout()), Signal.like(second.broken)
        m.d.comb += chosen.eq(second.broken & -second.broken)  # the lowest one
        for index, (code, fmt, field, _) in enumerate(rules):
            with m.If(chosen[index]):
                m.d.comb += [fault.code.eq(code), fault.field.eq(COMMAND_FIELD + fmt.index(field) if fmt else 0)]
        replaces = self._replaces(block)
        copies = (block.opcode == Opcode.COPY_BLOCK) & (block.size != 0)
        within = (block.source_space == block.destination_space) & ~replaces & self._params.has("local_copies")
        moves = Signal()
        m.d.comb += moves.eq(valid & (replaces | copies) & ~second.broken.any())
        if self._params.cores > 1:
            reads = moves & copies & (block.source_space == Space.SHARED)
            with m.If(load):
                m.d.sync += third.owner.eq(Mux(reads, named_owner(self._params, self.windows, second.command), 0))
        with m.If(load):
            m.d.sync += [
                third.command.eq(second.command),
                third.fault.eq(fault),
                third.moves.eq(moves),
                third.twice.eq(replaces),
                third.loop.eq(within & (block.destination_space == Space.SHARED)),
                third.stage.eq(within & (block.destination_space == Space.GLOBAL)),
                third.word.eq(replace.descriptor + (place.word << 3)),
                third.keep.eq(~(place.ones << place.lsb)),
                third.set.eq(replace.value << place.lsb),
            ]
            if self._params.prefetches:
                fits = (block.size != 0) & (block.size <= self._params.smem.size_bytes)
                prefetches = (block.opcode == Opcode.PREFETCH_BLOCK) & fits & ~second.broken.any()
                m.d.sync += third.prefetch.eq(prefetches)
                with m.If(prefetches & valid):
                    m.d.sync += third.moves.eq(1)
        return third

    def _send(self, m, valid, third, leave):
        """The outputs: the jobs of the command one after the other, or its end."""
        block = command_view(BLOCK, third.command)
        later = Signal()  # the first of two jobs has left
        # Computed one cycle ahead: no new reason to wait can appear while the command is here.
        may_end = Signal()
        m.d.sync += may_end.eq(valid & self._may_end(m, third))
        last = ~third.twice | later
        twice = third.prefetch if self._params.prefetches else Const(0, 1)
        m.d.comb += [
            self.finished.payload.code.eq(third.fault.code),
            self.finished.payload.field.eq(third.fault.field),
            self.finished.payload.tag.eq(block.tag),
        ]
        may_move, refused = self._ask(m, valid, third, leave) if self._params.cores > 1 else (1, 0)
        m.d.comb += [
            self.jobs.valid.eq(third.moves & may_move),
            self.finished.valid.eq((valid & ~third.moves & may_end) | refused),
            leave.eq((self.jobs.valid & self.jobs.ready & last & ~twice) | (self.finished.valid & self.finished.ready)),
            self.commit.eq(self.finished.valid & self.finished.ready & (block.opcode == Opcode.COMMIT)),
        ]
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += later.eq(~last)
            with m.If(twice):
                m.d.sync += third.moves.eq(0)

        job, to_shared, loop, stage = (
            self.jobs.payload,
            block.destination_space == Space.SHARED,
            third.loop,
            third.stage,
        )
        m.d.comb += [job.loop.eq(loop), job.stage.eq(stage)]
        with m.If(third.twice):
            m.d.comb += [
                job.store.eq(1),
                job.address.eq(third.word),
                job.size.eq(_FIELD_BYTES),
                job.immediate.eq(1),
                job.fill.eq(Mux(later, third.set, third.keep)),
                job.reduction.eq(Mux(later, Reduction.OR, Reduction.AND)),
                job.element.eq(Element.U64),
            ]
        with m.Else():
            m.d.comb += [
                job.store.eq(block.source_space == Space.SHARED),
                job.address.eq(Mux(loop, 0, Mux(to_shared | stage, block.source, block.destination))),
                job.smem.eq(Mux(stage, 0, Mux(to_shared & ~loop, block.destination, block.source))),
                job.size.eq(block.size),
                job.target.eq(block.destination),
                job.signal.eq(block.signal & to_shared),
                job.reduction.eq(block.reduction),
                job.element.eq(block.element),
                job.bytes.eq(block.size),
            ]
        if self._params.prefetches:
            m.d.comb += job.prefetch.eq(third.prefetch)
            with m.If(third.prefetch):
                m.d.comb += [job.store.eq(0), job.loop.eq(0), job.stage.eq(0), job.address.eq(block.source)]
        if self._params.cores > 1:
            m.d.comb += [
                job.receivers.eq(named_receivers(self._params, third.command)),
                job.block.eq(1),
                job.owner.eq(third.owner),
            ]
        m.d.comb += [job.tag.eq(block.tag), job.quiet.eq(~last), job.barrier.eq(block.barrier)]

    def _ask(self, m, valid, third, leave):
        """Asks the core that the command reads; returns whether the command may move, and whether it was refused."""
        block, requests, answer = command_view(BLOCK, third.command), self.loans.requests, self.loans.answer
        reads, sent, granted, refused = Signal(), Signal(), Signal(), Signal()
        address, row = block.source[: self._params.smem.addr_width], self._params.smem.row_width
        m.d.comb += [
            reads.eq(valid & third.owner.any()),
            requests.valid.eq(reads & ~sent),
            requests.payload.owner.eq(third.owner),
            requests.payload.asks.eq(1),
            requests.payload.row.eq(address[-row:]),
            requests.payload.last.eq((address + block.size - 1)[: self._params.smem.addr_width][-row:]),
            requests.payload.tag.eq(block.tag),
        ]
        with m.If(leave):
            m.d.sync += [sent.eq(0), granted.eq(0), refused.eq(0)]
        with m.Else():
            m.d.sync += sent.eq(sent | (requests.valid & requests.ready))
            with m.If(answer.answers):
                m.d.sync += [granted.eq(answer.granted), refused.eq(~answer.granted)]
        with m.If(refused):
            m.d.comb += [
                self.finished.payload.code.eq(ClusterError.REMOTE),
                self.finished.payload.address.eq(third.owner),
            ]
        return ~third.owner.any() | granted, refused

    def _may_end(self, m, third):
        """Whether the command at the outputs, which moves nothing, need not wait."""
        group = command_view(GROUP, third.command)
        may_end = Signal(init=1)
        with m.Switch(group.opcode):
            with m.Case(Opcode.COMMIT):
                m.d.comb += may_end.eq(~self.groups_full)
            with m.Case(Opcode.WAIT):
                m.d.comb += may_end.eq(Mux(group.read, self.unread, self.unfinished) <= group.count)
            with m.Case(Opcode.WAIT_ALL):
                m.d.comb += may_end.eq(self.still)
        return may_end
