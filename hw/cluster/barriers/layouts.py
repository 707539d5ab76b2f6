"""Payloads between a core that arrives and the core that a barrier lies in."""

from amaranth import unsigned
from amaranth.lib import data

from ...smem.layouts import BarrierRequestLayout

__all__ = ["ArrivalAnswerLayout", "ArrivalLayout", "CallLayout"]


class CallLayout(data.StructLayout):
    """An arrival at a barrier of another core."""

    def __init__(self, params):
        request = BarrierRequestLayout(params)
        super().__init__({name: request[name].shape for name in ("address", "value")})


class ArrivalLayout(data.StructLayout):
    """A call that a core takes in."""

    def __init__(self, params, cores):
        super().__init__({"call": CallLayout(params), "sender": unsigned(cores)})  # sender: one-hot


class ArrivalAnswerLayout(data.StructLayout):
    """What became of a call."""

    def __init__(self):
        super().__init__(
            {
                "valid": unsigned(1),  # strobe
                "done": unsigned(1),  # the phase completed now
                "error": unsigned(1),  # it did not arrive
                "closed": unsigned(1),  # because the core did not let it: nobody has recorded that
            }
        )
