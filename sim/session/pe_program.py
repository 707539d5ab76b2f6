"""A program of the processing engine, with all that it finds when it begins."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.hw.pe.params import PeParams

__all__ = ["PeProgram"]


@dataclass(frozen=True, eq=False)
class PeProgram:
    """What a processor writes before it starts the engine; golden model and hardware run the same.

    Attributes
    ----------
    params : PeParams
    smem : uint8 array
        All of shared memory. A run works on a copy.
    segments, pages : dict of int to int
        Words of the tables, by their index; the others are not written.
    setup, body, ending : tuple of int
        Instructions: those that give registers and predicates known values, those that are the purpose, and those that
        store what has become of registers and predicates.
    late : dict of int to int
        Words of page entries that are valid but not loaded at the start, as they must be written for the program
        to go on.
    """

    params: PeParams
    smem: np.ndarray
    segments: dict
    pages: dict
    body: tuple
    setup: tuple = ()
    ending: tuple = ()
    late: dict | None = None

    @classmethod
    def of_product(cls, product):
        """A golden ``Program``, whose sizes are PeParams."""
        placement = product.placement
        return cls(
            params=product.sizes,
            smem=placement.smem,
            segments={index: segment.pack() for index, segment in enumerate(placement.segments)},
            pages=dict(enumerate(placement.entries)),
            body=tuple(product.words),
        )

    @property
    def words(self):
        """All instructions, in order."""
        return (*self.setup, *self.body, *self.ending)

    def with_body(self, body):
        """The same program with other instructions between its setup and its ending."""
        return replace(self, body=tuple(body))
