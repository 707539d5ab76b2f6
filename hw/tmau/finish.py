"""The end of a command: its bytes are reported to the barrier, its tag to the processor, its error to the record."""

from amaranth import Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Error

from ..smem.layouts import LandedLayout
from .layouts import CompletionLayout, ErrorLayout

__all__ = ["DoneLayout", "Finisher"]


class DoneLayout(data.StructLayout):
    """The event that ends a command."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": unsigned(1),  # strobe
                "bytes": unsigned(params.smem.addr_width + 1),  # of the transfer, landed or not; 0 for other commands
                "record": ErrorLayout(),  # tag and code always; field and value with a code other than NONE
            }
        )


class Finisher(wiring.Component):
    """Ends commands, at most one a cycle: transfers that have landed before commands that setup has finished.

    A transfer that came with a bus error does not complete its barrier.

    Members
    -------
    completions : stream of CompletionLayout, in
        Transfers whose last line is being written in this cycle or has been. Taken together with ``landed``.
    finished : stream of ErrorLayout, in
        Commands that moved nothing. Commands are rare beside this port, so nothing waits for long.
    landed : stream of LandedLayout, out
        For the barrier of a transfer that names one. Combinational from ``completions``.
    done : DoneLayout, out
        Registered: one cycle after the command's handshake.
    """

    def __init__(self, params):
        super().__init__(
            {
                "completions": In(stream.Signature(CompletionLayout(params))),
                "finished": In(stream.Signature(ErrorLayout())),
                "landed": Out(stream.Signature(LandedLayout(params.smem))),
                "done": Out(DoneLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        completion, landed, record = self.completions.p, self.landed, self.done.record
        signals = completion.signal & ~completion.error
        m.d.comb += [
            landed.p.barrier.eq(completion.barrier),
            landed.p.bytes.eq(completion.bytes),
            landed.valid.eq(self.completions.valid & signals),
            self.completions.ready.eq(landed.ready | ~signals),
            self.finished.ready.eq(~self.completions.valid),
        ]
        m.d.sync += self.done.valid.eq(0)
        with m.If(self.completions.valid):
            m.d.sync += [
                self.done.valid.eq(self.completions.ready),
                self.done.bytes.eq(completion.bytes),
                record.code.eq(0),
                record.tag.eq(completion.tag),
                record.field.eq(0),
                record.value.eq(completion.address),
            ]
            with m.If(completion.error):
                m.d.sync += record.code.eq(Error.READ)
        with m.Elif(self.finished.valid):
            m.d.sync += [self.done.valid.eq(1), self.done.bytes.eq(0), record.eq(self.finished.p)]
        return m
