"""The barrier: eight bytes of shared memory that count arrivals and landed bytes (docs/tmau.md, "Barriers")."""

from enum import IntEnum

from .fields import Field, Format

__all__ = ["BARRIER", "BarrierOp"]


class BarrierOp(IntEnum):
    """Operation on a barrier.

    After each but ``INIT`` and ``TRY_WAIT`` the phase completes if ``pending`` and ``transactions`` are both zero:
    ``phase`` toggles and ``pending`` starts over from ``expected``.
    """

    INIT = 0  #: start phase 0 with ``value`` expected arrivals, 1 to 2^20 - 1
    ARRIVE = 1  #: take ``value`` from the pending arrivals, 1 up to what is pending
    EXPECT_TX = 2  #: add ``value`` bytes to the transaction count
    COMPLETE_TX = 3  #: take ``value`` bytes from the transaction count
    TRY_WAIT = 4  #: ask whether the phase of parity ``value`` (0 or 1) is complete; changes nothing


BARRIER = Format(
    "barrier",
    64,
    "State of one barrier, as it lies in shared memory.",
    (
        Field("pending", 0, 20, "Arrivals that the current phase still waits for."),
        Field("expected", 20, 20, "Arrivals that every phase waits for."),
        Field("transactions", 40, 21, "Bytes expected minus bytes landed in the current phase.", signed=True),
        Field("phase", 61, 1, "Parity of the current phase: toggles when a phase completes."),
    ),
)
