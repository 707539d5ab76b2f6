"""Payloads between the stages of the store path."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.golden.spec import LINE_BYTES

from ..layouts import TransferLayout

__all__ = ["EndLayout", "FetchedLayout", "StoreContextLayout", "StoredRunLayout", "WordStepLayout"]


class StoreContextLayout(data.StructLayout):
    """What the stages after the tracker need of a transfer; each member means the same as in ``TransferLayout``."""

    def __init__(self, params):
        members = ("tag", "quiet", "bytes", "swizzle", "fill", "immediate", "loop", "stage", "reduction", "element")
        transfer = TransferLayout(params)
        super().__init__({name: transfer[name].shape for name in members})


class StoredRunLayout(data.StructLayout):
    """The part of a run that is stored."""

    def __init__(self, params):
        super().__init__(
            {
                # Byte address in shared memory; with ``immediate`` the global address, which says how the fill lies.
                "source": unsigned(params.smem.addr_width),
                "address": unsigned(params.addr_width),  # global byte address
                "bytes": unsigned(params.smem.addr_width + 1),  # at least 1
                "empty": unsigned(1),  # nothing is stored, the transfer only ends here; the three above mean nothing
                "last": unsigned(1),  # of the transfer; with ``empty`` always
                "context": StoreContextLayout(params),
            }
        )


class WordStepLayout(data.StructLayout):
    """One step: at most one bus word, and at most one line for it.

    Bytes ``first … end - 1`` of the word come from shared memory, from byte ``source`` of the line on, and where they
    reach over its end, from the next line.
    """

    def __init__(self, params):
        super().__init__(
            {
                "word": unsigned(1),  # makes a bus word; without, it only fetches a line, or ends an empty transfer
                "first": unsigned(params.bus_log2),
                "end": unsigned(params.bus_log2 + 1),
                "source": unsigned(7),  # byte in the line from which byte ``first`` comes
                "straddle": unsigned(1),  # made of the line before the fetched one, and then of the fetched one
                "fetch": unsigned(1),  # takes a line, which stays until the next one is taken
                "row": unsigned(params.smem.row_width),  # that line: byte address >> 7
                "last": unsigned(1),  # last step of the transfer
                "context": StoreContextLayout(params),
            }
        )


class FetchedLayout(data.StructLayout):
    """A step with its line."""

    def __init__(self, params):
        super().__init__(
            {
                "step": WordStepLayout(params),
                "line": unsigned(8 * LINE_BYTES),  # meaningful with ``step.fetch``
                "error": unsigned(1),  # a staged line of the transfer so far came with an error
                "address": unsigned(params.addr_width),  # of the first such line's word
            }
        )


class EndLayout(data.StructLayout):
    """The end of a transfer whose words have all been handed over."""

    def __init__(self, params):
        transfer = TransferLayout(params)
        super().__init__(
            {
                **{name: transfer[name].shape for name in ("tag", "quiet", "bytes", "loop")},
                "error": unsigned(1),  # a staged line came with an error
                "address": unsigned(params.addr_width),  # of the word that it came from
            }
        )
