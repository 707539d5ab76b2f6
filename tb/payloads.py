"""What the bits of the streams' payloads mean, as the page Ports of the documentation lists them.

Commands are ``spec.COMMAND``, instructions those of ``spec.pe``, jobs
``spec.conv.JOB``. Fields follow one another from bit 0 on. ``addr_width`` are the bits
of a byte address in shared memory.
"""

from tilewright.spec import BANKS, CHUNK_BYTES, LINE_BYTES, Field, Format

__all__ = [
    "BARRIER_RESULT",
    "INSTRUCTION",
    "JOB_END",
    "PAGE_MOVED",
    "barrier_request",
    "fault",
    "indexed_word",
    "landed",
    "line",
    "read",
    "read_data",
    "row",
    "scatter",
]


def _payload(name, *fields):
    """A format of fields one behind the other, each a name, bits, and of lists how many elements."""
    made, lsb = [], 0
    for field, width, *count in fields:
        elements = count[0] if count else 0
        made.append(Field(field, lsb, width, "", count=elements, pitch=width))
        lsb += width * (elements or 1)
    return Format(name, lsb, "", tuple(made))


def read(addr_width):
    """``reads``: which lanes want a chunk, and byte address >> 4 of each lane's chunk."""
    return _payload("read", ("lanes", BANKS), ("chunks", addr_width - 4, BANKS))


def read_data(lanes=BANKS):
    """``read_data``: the chunk of each lane; of some shared memories an answer has half of the lanes."""
    return _payload("read_data", ("chunks", 8 * CHUNK_BYTES, lanes))


def scatter(addr_width):
    """``smem_scatter``: byte address >> 4 of each lane's chunk, its data, and a bit for each byte to be written."""
    lanes = (("chunks", addr_width - 4, BANKS), ("data", 8 * CHUNK_BYTES, BANKS), ("strobes", CHUNK_BYTES, BANKS))
    return _payload("scatter", *lanes)


def barrier_request(addr_width, cores=1):
    """``barriers``: ``spec.BarrierOp``, byte address, and arrivals, bytes or parity.

    In a cluster of several cores also whether the barrier lies in another core, and in which.
    """
    cluster = (("remote", 1), ("core", 4)) if cores > 1 else ()
    return _payload("barrier_request", ("op", 3), ("address", addr_width), ("value", 21), *cluster)


#: ``barrier_results``: the answer of TRY_WAIT, or that a phase completed; and that the operation was refused.
BARRIER_RESULT = _payload("barrier_result", ("done", 1), ("error", 1))


def line(addr_width):
    """``smem_writes``: byte address >> 7 of the line, its bytes, and a bit for each that is written."""
    return _payload("line", ("row", addr_width - 7), ("data", 8 * LINE_BYTES), ("strobe", LINE_BYTES))


def row(addr_width):
    """``smem_fetch_rows``: byte address >> 7 of a line."""
    return _payload("row", ("row", addr_width - 7))


def landed(addr_width):
    """``smem_landed``: byte address of a barrier, and bytes for its transaction count."""
    return _payload("landed", ("barrier", addr_width), ("bytes", addr_width + 1))


#: ``instructions``: a packed word.
INSTRUCTION = _payload("instruction", ("word", 128))


def indexed_word(bits, word_bits):
    """``segments`` (words of 256 bits) and ``pages`` (64), ``bits`` bits: number of the entry, and its packed word."""
    return _payload("indexed_word", ("index", bits - word_bits), ("word", word_bits))


def fault(bits):
    """``fault``, an error record of an instruction, ``bits`` bits: two of its fields are numbers of threads."""
    thread = (bits - 53) // 2
    threads = (("first", thread), ("last", thread))
    return _payload("fault", ("code", 4), ("number", 32), *threads, ("register", 16), ("inside", 1))


#: ``job_end``: error code of a job of the convolution engine, number of the field, and tag.
JOB_END = _payload("job_end", ("code", 8), ("field", 8), ("tag", 16))

#: ``page_moved``: strobe, tag of the command that moved a page, and that it ended with an error.
PAGE_MOVED = _payload("page_moved", ("valid", 1), ("tag", 16), ("error", 1))
