"""Payloads between the stages of the store path."""

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.utils import exact_log2

from tilewright.spec import BANKS

from ..layouts import TransferLayout, owner_members

__all__ = ["CutLayout", "EndLayout", "FetchedLayout", "StoreContextLayout", "StoredRunLayout", "WordStepLayout"]

#: What an end says of its transfer.
_ENDING = ("tag", "quiet", "bytes", "loop")


def _members(params, *names):
    """Members of ``TransferLayout``, which mean the same there."""
    transfer = TransferLayout(params)
    return {name: transfer[name].shape for name in names}


def _staged_error(params):
    """Of staged segments, which only copies within one memory have."""
    if not params.has("local_copies"):
        return {}
    return {
        "error": unsigned(1),  # a staged segment of the transfer so far came with an error
        "address": unsigned(params.addr_width),  # of the first such segment's word
    }


def _late_fill(params):
    """The fill beside a segment. Where segments come from the load path too, it is one of them."""
    if params.has("local_copies"):
        return {}
    return {
        "immediate": unsigned(1),  # the fill counts, and not the segment
        "fill": unsigned(64),
    }


class StoreContextLayout(data.StructLayout):
    """What the stages after the tracker need of a transfer; each member means the same as in ``TransferLayout``."""

    def __init__(self, params):
        moving = ("swizzle", "fill", "immediate", "stage", "reduction", "element")
        super().__init__(_members(params, *_ENDING, *moving, *owner_members(params)))


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


class CutLayout(data.StructLayout):
    """How a bus word is cut out of segments, and what ends with it.

    A *segment* is ``bus_bytes`` bytes of the source, at a multiple of as many. Byte ``p`` of the word, ``first <= p <
    end``, is byte ``(p + turn) % bus_bytes`` of the segment that was taken last. If the word straddles two segments,
    the bytes of a segment from ``turn`` on are those of the one before that.
    """

    def __init__(self, params):
        super().__init__(
            {
                "word": unsigned(1),  # makes a bus word; without, it only takes a segment, or ends an empty transfer
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
    """One step: at most one bus word, and at most one segment for it."""

    def __init__(self, params):
        super().__init__(
            {
                "cut": CutLayout(params),
                # Where the segment comes from, in shared memory: 16 bytes ``n`` of it from bank ``bank ^ n``.
                "row": unsigned(params.smem.row_width),  # byte address >> 7
                "bank": unsigned(exact_log2(BANKS)),
                "again": unsigned(1),  # it is the line of the segment before, of the same transfer
                # Or else: each means the same as in ``TransferLayout``.
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
                "complement": unsigned(params.bus_log2),  # of it, as of ``rotate_bytes``
                "before": unsigned(params.bus_bytes),  # bytes of the segment that are those of the one before it
                "strobe": unsigned(params.bus_bytes),  # bytes of the word
                **_members(params, *_ENDING),
                "segment": unsigned(params.bus_width),  # the one that was taken last
                **_staged_error(params),
                **_late_fill(params),
            }
        )


class EndLayout(data.StructLayout):
    """The end of a transfer whose words have all been handed over."""

    def __init__(self, params):
        super().__init__(_members(params, *_ENDING) | _staged_error(params))
