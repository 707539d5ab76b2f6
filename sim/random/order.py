"""One command of a mixed batch, and what decides how a batch runs."""

from dataclasses import dataclass, replace

from tilewright.golden import TensorMap

__all__ = ["Order", "Surroundings"]


@dataclass(frozen=True)
class Order:
    """One command: fields of its format, and the map whose descriptor it uses, with addresses that count from 0.

    Attributes
    ----------
    fields : dict
    tmap : TensorMap or None
    skew : int
        Bytes by which the address of the descriptor is wrong.
    based : tuple of str
        Fields that are global addresses.
    raw : bytes or None
        The descriptor as it stands, instead of a map.
    """

    fields: dict
    tmap: TensorMap | None = None
    skew: int = 0
    based: tuple = ()
    raw: bytes | None = None

    def descriptor(self, base):
        """Bytes of the descriptor, moved by ``base``; None if there is none."""
        if self.tmap is None:
            return self.raw
        return replace(self.tmap, address=self.tmap.address + base, check=False).pack()


@dataclass(frozen=True)
class Surroundings:
    """Everything but its commands that decides how a batch runs.

    Attributes
    ----------
    name : str
    base : int
        Where global memory begins; addresses in the batch count from 0.
    latency : int
    stall : float or (float, float)
    issue_stall, answer_stall : float
    seed : int
        Of the stalls.
    """

    name: str
    base: int
    latency: int
    stall: float | tuple
    issue_stall: float
    answer_stall: float
    seed: int

    def configure(self, session):
        """Sets up a session."""
        names = ("latency", "stall", "issue_stall", "answer_stall", "seed")
        session.configure(**{name: getattr(self, name) for name in names})

    def __str__(self):
        return (
            f"{self.name}: base {self.base:#x}, latency {self.latency}, stall {self.stall}, "
            f"issue stall {self.issue_stall}, answer stall {self.answer_stall}, seed {self.seed}"
        )
