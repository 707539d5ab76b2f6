"""Segments and page entries of the processing engine, while a program is made."""

from typing import NamedTuple

from .steps import Segment

__all__ = ["Entries", "Entry"]

#: Words of a program that write a segment, and a page entry.
_SEGMENT_WORDS, _PAGE_WORDS = 9, 3


class Entry(NamedTuple):
    """Writes a segment, or a page entry, of the processing engine.

    ``value`` is a :class:`Segment`, whose page entries, if it has several pages, begin at ``first_page``; or the
    address of a page.
    """

    number: int
    value: object
    first_page: int = 0

    @property
    def words(self):
        """Words of the program."""
        return _PAGE_WORDS if isinstance(self.value, int) else _SEGMENT_WORDS


class Entries:
    """What the tables of the processing engine hold. If there is no room for new entries, all are replaced.

    Parameters
    ----------
    pe : PeSizes, or None if there are no calls
    """

    def __init__(self, pe):
        self._pe, self._numbers = pe, {}
        self._calls = self._next_page = 0

    def of(self, call):
        """Numbers of the segments of a Call, a list of :class:`Entry` to write, and the last call to wait for before.

        The numbers are a dict by Segment. Calls are counted from 0; -1 is none.
        """
        wanted = list(dict.fromkeys(each for each in call.arguments if isinstance(each, Segment)))
        if not self._has_room(wanted):
            self._numbers, self._next_page = {}, 0
            before = self._calls - 1
        else:
            before = -1
        self._calls += 1
        entries = [entry for segment in wanted if segment not in self._numbers for entry in self._write(segment)]
        return self._numbers, entries, before

    def _has_room(self, wanted):
        """Whether there is room for the segments of ``wanted`` that are not there."""
        new = [segment for segment in wanted if segment not in self._numbers]
        pages = sum(map(_entries, new))
        return len(self._numbers) + len(new) <= self._pe.segments and self._next_page + pages <= self._pe.pages

    def _write(self, segment):
        number, first = len(self._numbers), self._next_page
        self._numbers[segment] = number
        self._next_page += _entries(segment)
        pages = segment.pages if _entries(segment) else ()
        return [*(Entry(first + place, address) for place, address in enumerate(pages)), Entry(number, segment, first)]


def _entries(segment):
    """How many page entries a segment has."""
    return len(segment.pages) if len(segment.pages) > 1 else 0
