"""Realigner: brings each step together with its bus word, rotated to where it lands."""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import CompletionLayout, WordLayout
from .steps import PieceLayout, StepLayout

__all__ = ["AlignedLayout", "Realigner"]


class AlignedLayout(data.StructLayout):
    """A piece and the word that its data come from."""

    def __init__(self, params):
        super().__init__(
            {
                "piece": PieceLayout(params),
                "word": unsigned(params.bus_width),  # byte p belongs to every destination address of p modulo the bus
                "swizzle": unsigned(2),
                "fill": unsigned(32),
                "tf32": unsigned(1),
                "completion": CompletionLayout(params),  # of the transfer; meaningful with the last piece
            }
        )


class Realigner(wiring.Component):
    """Takes a bus word for each step that pulls one and rotates it by bytes.

    Errors of words are collected until the transfer's last step and go into its completion, with the address of the
    first.

    Latency: one cycle from the word (or the step, if it pulls none) to the piece; the word goes through the rotator
    unregistered. Throughput: one step a cycle.

    Members
    -------
    steps : In(stream of StepLayout)
    words : In(stream of WordLayout)
        In the order in which the steps pull them.
    aligned : Out(stream of AlignedLayout)
    stall_data : Out(1)
        In this cycle a step waits for its word.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "steps": In(stream.Signature(StepLayout(params))),
                "words": In(stream.Signature(WordLayout(params))),
                "aligned": Out(stream.Signature(AlignedLayout(params))),
                "stall_data": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        step, word, aligned = self.steps.payload, self.words.payload, self.aligned.payload

        free = ~self.aligned.valid | self.aligned.ready
        pulls = self.steps.valid & step.pull
        m.d.comb += [
            self.stall_data.eq(pulls & ~self.words.valid),
            self.steps.ready.eq(free & ~self.stall_data),
            self.words.ready.eq(free & pulls),
        ]

        rotated = Mux(step.pull, word.data, aligned.word)
        for bit, shift in enumerate(step.rotate):
            rotated = Mux(shift, rotated.rotate_left(8 << bit), rotated)

        # The completion in the output register is also where errors are collected: it is never cleared in between.
        completion = aligned.completion
        erred = Signal()
        m.d.comb += erred.eq(completion.error & ~aligned.piece.last)

        with m.If(free):
            m.d.sync += self.aligned.valid.eq(self.steps.valid & ~self.stall_data)
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += [
                aligned.piece.eq(step.piece),
                aligned.swizzle.eq(step.context.swizzle),
                aligned.fill.eq(step.context.fill),
                aligned.tf32.eq(step.context.tf32),
                completion.tag.eq(step.context.tag),
                completion.signal.eq(step.context.signal),
                completion.barrier.eq(step.context.barrier),
                completion.bytes.eq(step.context.bytes),
                completion.error.eq(erred | (step.pull & word.error)),
            ]
            with m.If(step.pull | step.reuse):
                m.d.sync += aligned.word.eq(rotated)
            with m.If(~erred):
                m.d.sync += completion.address.eq(word.address)
        return m
