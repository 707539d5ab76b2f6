"""Replay cases of the convolution engine on hardware."""

from tilewright.golden.spec.conv.errors import ConvError

from .conv_cases import conv_outcome

__all__ = ["run_conv_on_session"]


def run_conv_on_session(case, session):
    """Runs a :class:`ConvCase` on a ``ConvSession`` that is large enough; its :class:`Outcome`."""
    layer = case.layer
    run = session.run([layer.word], shared=layer.smem)
    (end,) = run.jobs
    error = None if end.code == ConvError.NONE else end.code.name.lower()
    smem = session.shared_memory.read(0, len(layer.smem))
    return conv_outcome(case, error, smem, cycles=end.cycle - run.accepted[0])
