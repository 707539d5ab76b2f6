"""What instructions read and write of shared memory, element by element (docs/pe.md, "mm", "ld, st")."""

import numpy as np

from tilewright.spec.pe import PeError

__all__ = ["OpenState", "lowest", "read_columns", "read_words", "write_words"]

_WORD_BYTES = 4
_NO_ERROR = max(PeError) + 1


def read_columns(smem, pages, segment, coordinates, on, count, dimension):
    """Columns of B.

    Parameters
    ----------
    smem : uint8 array
    pages : PageTable
    segment : Segment
    coordinates : integers of shape (columns, rank)
        First elements.
    on : bool, of shape (columns,)
        The columns that are read; their first elements are inside.
    count, dimension : int
        Elements of a column, and along what they lie.

    Returns
    -------
    elements : unsigned integers of shape (columns, count)
        Raw bits; 0 of those outside.
    codes : integers of shape (columns,)
        The lowest error of each column, 0 if there is none.
    """
    elements = np.repeat(coordinates[:, np.newaxis], count, axis=1)
    elements[..., dimension] += np.arange(count)
    touched = on[:, np.newaxis] & (elements[..., dimension] < segment.size[dimension])
    addresses, codes = pages.translate(segment, elements, touched, len(smem))
    values = _bytes(addresses, segment.element.bytes, smem)
    values = values.view(f"<u{segment.element.bytes}")[..., 0]
    return np.where(touched & (codes == 0), values, 0), lowest(codes)


def read_words(smem, pages, segment, coordinates, threads, count):
    """Words of ``threads`` (a bool each); ``coordinates`` are those of their first elements.

    Returns the words, uint32 of shape (threads, count), and their errors, 0 if there is none. Bytes of elements that
    are outside, or that met an error, are 0.
    """
    touched, addresses, codes = _words(len(smem), pages, segment, coordinates, threads, count)
    read = touched & (codes == 0)[..., np.newaxis]
    contents = np.where(read[..., np.newaxis], _bytes(addresses, segment.element.bytes, smem), 0)
    words = np.ascontiguousarray(contents.astype(np.uint8)).reshape(*codes.shape, _WORD_BYTES).view("<u4")
    return words[..., 0], codes


def write_words(smem, pages, segment, coordinates, threads, words):
    """The other way: changes ``smem``.

    Returns the errors of the ``words``, uint32 of shape (threads, count), and the addresses of bytes that one thread
    has overwritten after another one wrote something else.
    """
    touched, addresses, codes = _words(len(smem), pages, segment, coordinates, threads, words.shape[1])
    size = segment.element.bytes
    contents = np.ascontiguousarray(words.astype("<u4")).view(np.uint8).reshape(*touched.shape, size)
    written = touched & (codes == 0)[..., np.newaxis]
    places, wanted = addresses[written][:, np.newaxis] + np.arange(size), contents[written]
    smem[places] = wanted
    return codes, places[smem[places] != wanted]


def _words(size_bytes, pages, segment, coordinates, threads, count):
    """Which elements of words are accessed, and their addresses; then the errors of the words.

    Arrays of shape (threads, count, elements of a word) twice, and (threads, count).
    """
    per_word = _WORD_BYTES // segment.element.bytes
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
    """The lowest error along the last axis; 0 where there is none."""
    lowest = np.where(codes == 0, _NO_ERROR, codes).min(axis=-1)
    return np.where(lowest == _NO_ERROR, 0, lowest)


def _bytes(addresses, count, smem):
    """The ``count`` bytes from each address on, in a further dimension."""
    return smem[addresses[..., np.newaxis] + np.arange(count)]


_OPEN_WORD = 0xFFFFFFFF


class OpenState:
    """What instructions make of registers that nothing has written, and of bytes that are open.

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

    def rely_on_address(self, segment, coordinates, threads, unsure, rf, count, what):
        """Notes if it is open what ``threads`` access: ``count`` elements, whose coordinates they have from ``rf`` on.

        Of threads that are ``unsure`` it is open whether they take part.

        Where a coordinate that is not open lies outside, the others do not matter.
        """
        unknown = self.registers[:, rf : rf + segment.rank]
        size = np.array(segment.size)
        outside = ~unknown & (coordinates >= size)
        first = coordinates[:, 0]
        # Elements along dimension 0 wrap modulo 2^32.
        outside[:, 0] = ~unknown[:, 0] & (first >= size[0]) & (first + count <= 1 << 32)
        if ((threads & unknown.any(axis=1) | unsure) & ~outside.any(axis=1)).any():
            self.memory.undecide(what)

    def set_register(self, rd, threads, unsure=False):
        """Notes that a register has been set in ``threads``; it is open where ``unsure`` is true."""
        self.registers[:, rd] = np.where(threads, False, self.registers[:, rd]) | unsure

    def load(self, pages, segment, coordinates, threads, loaded, first):
        """Notes a load of words into the registers from ``first`` on; ``loaded`` says which words were."""
        marks = np.zeros(loaded.shape, bool)
        if self.memory:
            marks = read_words(self.memory.marks, pages, segment, coordinates, threads, loaded.shape[1])[0] != 0
        kept = self.registers[:, first : first + loaded.shape[1]]
        kept[...] = np.where(loaded, marks, kept)

    def store(self, pages, segment, coordinates, threads, first, count, contested):
        """Notes a store of the registers from ``first`` on; at ``contested`` places threads wrote different bytes."""
        sources = self.registers[:, first : first + count] & threads[:, np.newaxis]
        if self.memory or sources.any():
            words = np.where(sources, _OPEN_WORD, 0).astype(np.uint32)
            write_words(self.memory.marks, pages, segment, coordinates, threads, words)
        if contested.size:
            self.memory.spoil(contested)

    def columns(self, pages, segment, coordinates, on, count, dimension):
        """Which columns have an open element, as a bool array."""
        if not self.memory:
            return np.zeros(len(on), bool)
        return read_columns(self.memory.marks, pages, segment, coordinates, on, count, dimension)[0].any(axis=1)
