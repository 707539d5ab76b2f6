"""What becomes of the data on their way: rounding, and which bytes of a line are data at all."""

from amaranth.hdl import Cat, Signal

from tilewright.golden.spec import CHUNK_BYTES

__all__ = ["below", "round_tf32"]

_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


def round_tf32(value, on):
    """A 32-bit float rounded to the ten mantissa bits of TF32 (docs/tmau.md, "Fill and rounding"), to nearest even.

    A NaN becomes 0x7FFFE000; what is too large to round down becomes infinity. All choices are in front of the adder.

    Parameters
    ----------
    value : Value
    on : Value
        Otherwise the value stays as it is.
    """
    kept, dropped = value[13:], value[:13]
    nan = on & value[23:31].all() & value[:23].any()
    up = on & ~nan & dropped[12] & (dropped[:12].any() | kept[0])
    base = Cat(kept[:-1] | nan.replicate(len(kept) - 1), kept[-1] & ~nan)
    return Cat(dropped & ~on.replicate(len(dropped)), (base + up)[: len(kept)])


def below(m, limit, flips, name):
    """Mask of the bytes below ``limit``, where chunk c lies at place c XOR ``flips``.

    The number of the chunk and the byte in it are compared apart, once for all chunks.

    Parameters
    ----------
    m : Module
    limit : Value
        Bytes.
    flips : Value
        Two to the power of its length is the number of chunks; no bits are one chunk.
    name : str
        Of the mask.
    """
    chunks = 1 << len(flips)
    number = limit[_CHUNK_LOG2:]
    mask = Signal(chunks * CHUNK_BYTES, name=name)
    partly = Signal(CHUNK_BYTES, name=f"{name}_partly")  # of the chunk that the limit lies in
    m.d.comb += partly.eq(Cat(limit[:_CHUNK_LOG2] > byte for byte in range(CHUNK_BYTES)))
    for place in range(chunks):
        chunk = place ^ flips
        whole = Signal(name=f"{name}_whole{place}")
        here = Signal(name=f"{name}_here{place}")
        m.d.comb += [
            whole.eq(chunk < number),
            here.eq(chunk == number),
            mask.word_select(place, CHUNK_BYTES).eq(
                whole.replicate(CHUNK_BYTES) | (here.replicate(CHUNK_BYTES) & partly)
            ),
        ]
    return mask
