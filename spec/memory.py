"""What every unit agrees on about memory, whatever its parameters: sizes, the swizzle, and the barrier."""

from enum import IntEnum

from .fields import Field, Format

__all__ = [
    "BANKS", "BARRIER", "CHUNK_BYTES", "LINE_BYTES", "NAN_FILL", "PAGE_BYTES", "BarrierOp", "Swizzle",
]  # fmt: skip

#: Banks of shared memory, each one chunk wide.
BANKS = 8
#: Bytes of a chunk: the width of a bank.
CHUNK_BYTES = 16
#: Bytes of a line of shared memory: the chunks at one address of all banks.
LINE_BYTES = BANKS * CHUNK_BYTES
#: Bytes of a page of global memory. No burst crosses the edge of a page, and windows consist of whole pages.
PAGE_BYTES = 4096
#: Pattern of ``Fill.NAN``: a NaN in every half.
NAN_FILL = 0x7FF7_7FF7


class Swizzle(IntEnum):
    """Span in which the 16-byte chunks of a 128-byte shared-memory line are permuted (docs/tmau.md, "Swizzle")."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3

    @property
    def span(self):
        """Bytes; 0 without swizzle."""
        return (0, 32, 64, 128)[self]


class BarrierOp(IntEnum):
    """Operation on a barrier (docs/tmau.md, "Barriers").

    After each operation except ``INIT`` and ``TRY_WAIT`` the phase completes if ``pending`` and ``transactions`` are
    both zero: ``phase`` toggles and ``pending`` starts over from ``expected``.
    """

    INIT = 0  #: start phase 0 with ``value`` expected arrivals, 1 to 2^20 - 1
    ARRIVE = 1  #: subtract ``value`` from the pending arrivals, 1 to ``pending``
    EXPECT_TX = 2  #: add ``value`` bytes to the transaction count
    COMPLETE_TX = 3  #: subtract ``value`` bytes from the transaction count
    TRY_WAIT = 4  #: ask whether the phase of parity ``value`` (0 or 1) is complete; changes nothing


BARRIER = Format(
    "barrier",
    64,
    "State of one barrier in shared memory.",
    (
        Field("pending", 0, 20, "Arrivals that the current phase still waits for."),
        Field("expected", 20, 20, "Arrivals that every phase waits for."),
        Field("transactions", 40, 21, "Bytes expected minus bytes landed in the current phase.", signed=True),
        Field("phase", 61, 1, "Parity of the current phase: toggles when a phase completes."),
    ),
)
