"""What becomes of the data on their way: rounding, and which bytes of a line are data at all."""

from amaranth.hdl import Cat, Signal

from tilewright.spec import CHUNK_BYTES

__all__ = ["below", "bytes_below", "chunks_below", "find_tf32", "round_tf32"]

_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


def find_tf32(value, on):
    """What has to be done to a 32-bit float to round it: whether it is a NaN, and whether it is rounded up.

    Apart from :func:`round_tf32`, for a register between both: this one looks at all bits.

    Parameters
    ----------
    value : Value
    on : Value
        Otherwise nothing is done to it.

    Returns
    -------
    (Value, Value)
        A bit each.
    """
    kept, dropped = value[13:], value[:13]
    nan = on & value[23:31].all() & value[:23].any()
    return nan, on & ~nan & dropped[12] & (dropped[:12].any() | kept[0])


def round_tf32(value, on, nan, up):
    """A 32-bit float rounded to the ten mantissa bits of TF32 (docs/tmau.md, "Fill and rounding"), to nearest even.

    A NaN becomes 0x7FFFE000; what is too large to round down becomes infinity. All choices are in front of the adder.

    Parameters
    ----------
    value : Value
    on : Value
        Otherwise the value stays as it is.
    nan, up : Value
        As of :func:`find_tf32`.
    """
    kept, dropped = value[13:], value[:13]
    base = Cat(kept[:-1] | nan.replicate(len(kept) - 1), kept[-1] & ~nan)
    return Cat(dropped & ~on.replicate(len(dropped)), (base + up)[: len(kept)])


def chunks_below(limit, flips):
    """Masks of the chunks that lie wholly below ``limit``, and of the one that it lies in, if there is such a chunk.

    Parameters
    ----------
    limit : Value
        Bytes.
    flips : Value
        Chunk c lies at place c XOR ``flips``. Two to the power of its length is the number of chunks; no bits are one.

    Returns
    -------
    (Value, Value)
        A bit for each place.
    """
    number = limit[_CHUNK_LOG2:]
    chunks = [place ^ flips for place in range(1 << len(flips))]
    return Cat(chunk < number for chunk in chunks), Cat(chunk == number for chunk in chunks)


def bytes_below(m, whole, partly, limit, name):
    """Mask of the bytes below ``limit``.

    Parameters
    ----------
    m : Module
    whole, partly : Value
        As of :func:`chunks_below`. Where the limit is a number of whole chunks, ``partly`` may be anything.
    limit : Value
        Of which the lowest bits count, the byte in a chunk.
    name : str
        Of the mask.
    """
    mask, first = Signal(len(whole) * CHUNK_BYTES, name=name), Signal(CHUNK_BYTES, name=f"{name}_first")
    m.d.comb += first.eq(Cat(limit[:_CHUNK_LOG2] > byte for byte in range(CHUNK_BYTES)))
    for place in range(len(whole)):
        all_of_it, some = (chunks[place].replicate(CHUNK_BYTES) for chunks in (whole, partly))
        m.d.comb += mask.word_select(place, CHUNK_BYTES).eq(all_of_it | (some & first))
    return mask


def below(m, limit, flips, name):
    """Mask of the bytes below ``limit``, where chunk c lies at place c XOR ``flips``.

    The number of the chunk and the byte in it are compared apart, once for all chunks.

    Parameters
    ----------
    m : Module
    limit, flips : Value
        As of :func:`chunks_below`.
    name : str
        Of the mask.
    """
    masks = [Signal(1 << len(flips), name=f"{name}_{which}") for which in ("whole", "partly")]
    m.d.comb += [mask.eq(chunks) for mask, chunks in zip(masks, chunks_below(limit, flips), strict=True)]
    return bytes_below(m, *masks, limit, name)
