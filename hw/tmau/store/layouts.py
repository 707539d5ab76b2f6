"""Payloads between the stages of the store path."""

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.utils import exact_log2

from tilewright.spec import BANKS

from ..layouts import TransferLayout, owner_members

__all__ = ["CutLayout", "EndLayout", "FetchedLayout", "StoreContextLayout", "StoredRunLayout", "WordStepLayout"]

#: Members of ``TransferLayout`` that the end of a transfer needs.
_ENDING = ("tag", "quiet", "bytes", "loop")


def _members(params, *names):
    """Members of ``TransferLayout``."""
    transfer = TransferLayout(params)
    return {name: transfer[name].shape for name in names}


def _staged_error(params):
    """Members for errors of staged segments."""
    return {
        "error": unsigned(1),  # a staged segment of the transfer had an error
        "address": unsigned(params.addr_width),  # of the first such segment's word
    }


class StoreContextLayout(data.StructLayout):
    """Members of ``TransferLayout`` that the stages after the tracker need."""

    def __init__(self, params):
        moving = ("swizzle", "fill", "immediate", "stage", "reduction", "element")
        super().__init__(_members(params, *_ENDING, *moving, *owner_members(params)))


class StoredRunLayout(data.StructLayout):
    """The part of a run that is stored."""

    def __init__(self, params):
        super().__init__(
            {
                # Byte address in shared memory; with ``immediate`` the global address, which aligns the fill.
                "source": unsigned(params.smem.addr_width),
                "address": unsigned(params.addr_width),  # global byte address
                "bytes": unsigned(params.smem.addr_width + 1),  # at least 1
                "empty": unsigned(
                    1
                ),  # nothing is stored, the transfer only ends here; the three members above are undefined
                "last": unsigned(1),  # of the transfer; with ``empty`` always
                "context": StoreContextLayout(params),
            }
        )


class CutLayout(data.StructLayout):
    """How a bus word is made of segments, and what ends with it.

    A *segment* is an aligned part of the source, as wide as a bus word. Byte ``p`` of the word, ``first <= p < end``,
    is byte ``(p + turn) % bus_bytes`` of the segment that was taken last. If the word straddles two segments, bytes
    from ``turn`` on come from the previous segment.
    """

    def __init__(self, params):
        super().__init__(
            {
                "word": unsigned(
                    1
                ),  # makes a bus word; otherwise the step only takes a segment, or ends an empty transfer
                "fetch": unsigned(1),  # takes a segment
                "first": unsigned(params.bus_log2),
                "end": unsigned(params.bus_log2 + 1),
                "turn": unsigned(params.bus_log2),
                "straddle": unsigned(1),  # only with ``fetch``
                "last": unsigned(1),  # last step of the transfer
                **_members(params, *_ENDING),
            }
        )


class WordStepLayout(data.StructLayout):
    """One step: at most one bus word and one new segment."""

    def __init__(self, params):
        super().__init__(
            {
                "cut": CutLayout(params),
                # The segment in shared memory: its chunk ``n`` is in bank ``bank ^ n`` of the row.
                "row": unsigned(params.smem.row_width),  # byte address >> 7
                "bank": unsigned(exact_log2(BANKS)),
                "again": unsigned(1),  # it is in the same line as the previous segment of the transfer
                # Other sources, as in ``TransferLayout``.
                **_members(params, "stage", "immediate", "fill", *owner_members(params)),
            }
        )


class FetchedLayout(data.StructLayout):
    """A step with its segment; ``word``, ``fetch``, ``turn`` and ``last`` as in ``CutLayout``."""

    def __init__(self, params):
        super().__init__(
            {
                **{name: unsigned(1) for name in ("word", "fetch", "last")},
                "turn": unsigned(params.bus_log2),
                "inverse": unsigned(params.bus_log2),  # ``~turn``, for a rotator
                "before": unsigned(params.bus_bytes),  # mask of the bytes that come from the previous segment
                "strobe": unsigned(params.bus_bytes),  # mask of the bytes of the word; 0 after an error
                **_members(params, *_ENDING),
                "segment": unsigned(params.bus_width),  # the one that was taken last; 0 if the source is the fill
                "fill": unsigned(64),  # 0 otherwise
                **_staged_error(params),
            }
        )


class EndLayout(data.StructLayout):
    """The end of a transfer all of whose words have left."""

    def __init__(self, params):
        super().__init__(_members(params, *_ENDING) | _staged_error(params))
