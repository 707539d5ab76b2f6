"""Fill and rounding: masks of the bytes below a limit, and TF32."""

from amaranth.hdl import Cat, Signal

from tilewright.spec import CHUNK_BYTES

__all__ = ["below", "bytes_below", "chunks_below", "find_tf32", "round_tf32"]

_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


def find_tf32(value, on):
    """First half of rounding a 32-bit float to TF32: whether it is a NaN, and whether it is rounded up.

    This half depends on all bits; a register may follow before :func:`round_tf32`. Both results are 0 unless ``on``.
    """
    mantissa_lsb, dropped = value[13], value[:13]
    nan = on & value[23:31].all() & value[:23].any()
    return nan, on & ~nan & dropped[12] & (dropped[:12].any() | mantissa_lsb)


def round_tf32(value, on, nan, up):
    """A 32-bit float rounded to nearest even with ten mantissa bits (docs/tmau.md, "Fill and rounding").

    A NaN becomes 0x7FFFE000; values that overflow become infinity. Without ``on`` the value is unchanged. ``nan`` and
    ``up`` come from :func:`find_tf32`.
    """
    upper, dropped = value[13:], value[:13]
    base = Cat(upper[:-1] | nan.replicate(len(upper) - 1), upper[-1] & ~nan)
    return Cat(dropped & ~on.replicate(len(dropped)), (base + up)[: len(upper)])


def chunks_below(limit, flips):
    """Two masks of chunks: those below ``limit``, a number of bytes, and the chunk that contains it, if there is one.

    Bit p of a mask is chunk p XOR ``flips``. There are two to the power of ``len(flips)`` chunks.
    """
    number = limit[_CHUNK_LOG2:]
    chunks = [place ^ flips for place in range(1 << len(flips))]
    return Cat(chunk < number for chunk in chunks), Cat(chunk == number for chunk in chunks)


def bytes_below(m, whole, partly, limit, name):
    """Mask of the bytes below ``limit``, from its lowest bits and the two masks of :func:`chunks_below`.

    If the limit is a multiple of the chunk size, ``partly`` may have any value.
    """
    mask, first = Signal(len(whole) * CHUNK_BYTES, name=name), Signal(CHUNK_BYTES, name=f"{name}_first")
    m.d.comb += first.eq(Cat(limit[:_CHUNK_LOG2] > byte for byte in range(CHUNK_BYTES)))
    for place in range(len(whole)):
        all_bytes, some_bytes = (chunks[place].replicate(CHUNK_BYTES) for chunks in (whole, partly))
        m.d.comb += mask.word_select(place, CHUNK_BYTES).eq(all_bytes | (some_bytes & first))
    return mask


def below(m, limit, flips, name):
    """Mask of the bytes below ``limit``, with chunk c at place c XOR ``flips``; numbers of chunks are compared once."""
    masks = [Signal(1 << len(flips), name=f"{name}_{which}") for which in ("whole", "partly")]
    m.d.comb += [mask.eq(chunks) for mask, chunks in zip(masks, chunks_below(limit, flips), strict=True)]
    return bytes_below(m, *masks, limit, name)
