"""Accesses of instructions to shared memory, element by element, and open registers and bytes.

Specification: docs/pe.md, "mm", "ld, st", "State".
"""

import numpy as np

from tilewright.spec.pe import PeError, SegmentElement

__all__ = ["OpenState", "elements_of_word", "lowest", "read_columns", "read_words", "write_words"]

_WORD_BYTES = 4
_NO_ERROR = max(PeError) + 1
_OPEN_WORD = 0xFFFFFFFF
#: Elements that a load of single elements extends with the sign.
_SIGNED = {SegmentElement.S8, SegmentElement.S16}


def read_columns(smem, pages, segment, coordinates, on, count, dimension):
    """Columns of B.

    Parameters
    ----------
    smem : uint8 array
    pages : PageTable
    segment : Segment
    coordinates : integers of shape (columns, rank)
        Of the first elements.
    on : bool, of shape (columns,)
        The columns that are read; their first elements are inside.
    count, dimension : int
        Elements of a column, and the dimension along which they lie.

    Returns
    -------
    elements : unsigned integers of shape (columns, count)
        Raw bits; 0 outside the segment.
    codes : integers of shape (columns,)
        The lowest error of each column, or 0.
    """
    elements = np.repeat(coordinates[:, np.newaxis], count, axis=1)
    elements[..., dimension] += np.arange(count)
    touched = on[:, np.newaxis] & (elements[..., dimension] < segment.size[dimension])
    addresses, codes = pages.translate(segment, elements, touched, len(smem))
    values = _bytes(addresses, segment.element.bytes, smem)
    values = values.view(f"<u{segment.element.bytes}")[..., 0]
    return np.where(touched & (codes == 0), values, 0), lowest(codes)


def elements_of_word(segment, element):
    """Elements of ``segment`` in a register: one if the instruction says ``element``, otherwise four bytes of them."""
    return 1 if element else _WORD_BYTES // segment.element.bytes


def read_words(smem, pages, segment, coordinates, threads, count, element=False):
    """Words of ``threads`` (a bool each); ``coordinates`` are those of their first elements.

    Returns the words, uint32 of shape (threads, count), and the error of each word, or 0. Bytes of elements outside the
    segment or with an error are 0. A word is one ``element``, extended, or four bytes of elements.
    """
    per_word = elements_of_word(segment, element)
    touched, addresses, codes = _words(len(smem), pages, segment, coordinates, threads, count, per_word)
    read, size = touched & (codes == 0)[..., np.newaxis], segment.element.bytes
    contents = np.where(read[..., np.newaxis], _bytes(addresses, size, smem), 0)
    contents = np.ascontiguousarray(contents.astype(np.uint8)).reshape(*codes.shape, per_word * size)
    kind = "i" if element and segment.element in _SIGNED else "u"
    return contents.view(f"<{kind}{per_word * size}")[..., 0].astype(np.uint32), codes


def write_words(smem, pages, segment, coordinates, threads, words, element=False):
    """Writes ``words``, uint32 of shape (threads, count), to ``smem``; other arguments as in :func:`read_words`.

    Returns the error of each word, and the addresses of bytes that two threads wrote with different values.
    """
    per_word, size = elements_of_word(segment, element), segment.element.bytes
    touched, addresses, codes = _words(len(smem), pages, segment, coordinates, threads, words.shape[1], per_word)
    contents = np.ascontiguousarray(words.astype("<u4")).view(np.uint8).reshape(*words.shape, _WORD_BYTES)
    contents = contents[..., : per_word * size].reshape(*touched.shape, size)
    written = touched & (codes == 0)[..., np.newaxis]
    places, values = addresses[written][:, np.newaxis] + np.arange(size), contents[written]
    smem[places] = values
    return codes, places[smem[places] != values]


def _words(size_bytes, pages, segment, coordinates, threads, count, per_word):
    """The accessed elements of words and their addresses, of shape (threads, count, elements of a word); and errors.

    Errors are those of words, of shape (threads, count).
    """
    elements = np.broadcast_to(
        coordinates[:, np.newaxis, np.newaxis], (len(coordinates), count, per_word, segment.rank)
    ).copy()
    elements[..., 0] += np.arange(count * per_word).reshape(count, per_word)
    elements[..., 0] &= 0xFFFFFFFF
    touched = threads[:, np.newaxis, np.newaxis] & segment.inside(elements)
    aligned = (coordinates[:, 0] % per_word == 0)[:, np.newaxis]
    addresses, codes = pages.translate(segment, elements, touched & aligned[..., np.newaxis], size_bytes)
    misaligned = touched.any(axis=-1) & ~aligned
    return touched, addresses, np.where(misaligned, int(PeError.ALIGNMENT), lowest(codes))


def lowest(codes):
    """The lowest error along the last axis; 0 if there is none."""
    lowest = np.where(codes == 0, _NO_ERROR, codes).min(axis=-1)
    return np.where(lowest == _NO_ERROR, 0, lowest)


def _bytes(addresses, count, smem):
    """The ``count`` bytes from each address, in a further dimension."""
    return smem[addresses[..., np.newaxis] + np.arange(count)]


class OpenState:
    """Registers, predicates and bytes that the specification leaves open, such as registers before the first write.

    Parameters
    ----------
    registers, predicates : (int, int)
        Shapes of the arrays of the engine.
    memory : OpenBytes
        Of shared memory.

    Attributes
    ----------
    registers, predicates : bool arrays
        Which are open: all of them at first.
    memory : OpenBytes
    """

    def __init__(self, registers, predicates, memory):
        self.registers, self.predicates = np.ones(registers, bool), np.ones(predicates, bool)
        self.memory = memory

    def guards(self, guard, predicate):
        """In which threads it is open whether they take part."""
        return self.predicates[predicate] if guard else np.zeros(len(self.registers), bool)

    def rely_on_address(self, segment, coordinates, threads, unsure, rf, count, name):
        """Notes it if the addresses of ``count`` elements of ``threads``, with offset registers from ``rf``, are open.

        It is open whether threads that are ``unsure`` take part. If a coordinate that is not open lies outside, the
        others do not matter.
        """
        unknown = self.registers[:, rf : rf + segment.rank]
        size = np.array(segment.size)
        outside = ~unknown & (coordinates >= size)
        first = coordinates[:, 0]
        # Elements along dimension 0 wrap modulo 2^32.
        outside[:, 0] = ~unknown[:, 0] & (first >= size[0]) & (first + count <= 1 << 32)
        if ((threads & unknown.any(axis=1) | unsure) & ~outside.any(axis=1)).any():
            self.memory.undecide(name)

    def set_register(self, rd, threads, unsure=False):
        """Notes that a register has been set in ``threads``; it is open where ``unsure`` is true."""
        self.registers[:, rd] = np.where(threads, False, self.registers[:, rd]) | unsure

    def load(self, pages, segment, coordinates, threads, loaded, first, element):
        """Notes a load of words into the registers from ``first``; ``loaded`` says which words were loaded."""
        marks, count = np.zeros(loaded.shape, bool), loaded.shape[1]
        if self.memory:
            marks = read_words(self.memory.marks, pages, segment, coordinates, threads, count, element)[0] != 0
        targets = self.registers[:, first : first + loaded.shape[1]]
        targets[...] = np.where(loaded, marks, targets)

    def store(self, pages, segment, coordinates, threads, first, count, contested, element):
        """Notes a store of the registers from ``first``; at ``contested`` places threads wrote different bytes."""
        sources = self.registers[:, first : first + count] & threads[:, np.newaxis]
        if self.memory or sources.any():
            words = np.where(sources, _OPEN_WORD, 0).astype(np.uint32)
            write_words(self.memory.marks, pages, segment, coordinates, threads, words, element)
        if contested.size:
            self.memory.spoil(contested)

    def columns(self, pages, segment, coordinates, on, count, dimension):
        """Which columns have an open element, as a bool array."""
        if not self.memory:
            return np.zeros(len(on), bool)
        return read_columns(self.memory.marks, pages, segment, coordinates, on, count, dimension)[0].any(axis=1)
