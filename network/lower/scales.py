"""Tables of 256 results as a product with one binary32 number, rounded (docs/network.md, "Operators as jobs")."""

import numpy as np

__all__ = ["scale_of"]


def scale_of(table, dtype):
    """Scale, zero point of the input, zero point of the results, with which a job of single elements is a table.

    Results are clamped to the least and the largest entry.

    Parameters
    ----------
    table : array of 256 elements, u8 or s8
        Indexed by the byte of the input.
    dtype : numpy dtype
        Of the input, u8 or s8.

    Returns
    -------
    tuple of int or None
        The scale as raw bits. None if there is none.
    """
    least, most = int(table.min()), int(table.max())
    numbers = np.arange(256).astype(np.uint8).view(dtype).astype(np.int64)
    wanted = table.astype(np.int64)
    for x_zero in numbers[np.argsort(np.abs(numbers - numbers.mean()))].tolist():
        distance, y_zero = numbers - x_zero, int(wanted[np.flatnonzero(numbers == x_zero)[0]])
        # A clamped result bounds from one side; of the others the number lies within a half.
        above = np.where(wanted == most, np.inf, wanted - y_zero + 0.5)
        below = np.where(wanted == least, -np.inf, wanted - y_zero - 0.5)
        used = distance != 0
        ends = np.stack((below[used] / distance[used], above[used] / distance[used]))
        low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
        if low > high:
            continue
        if not np.isfinite([low, high]).all():
            finite = [end for end in (low, high) if np.isfinite(end)]
            low = high = finite[0] if finite else 0.0
        middle = np.float32((low + high) / 2)
        for end in (middle, np.float32(low), np.float32(high)):
            for scale in (end, np.nextafter(end, np.float32(np.inf)), np.nextafter(end, np.float32(-np.inf))):
                product = np.rint(distance.astype(np.float32) * scale).astype(np.float64) + y_zero
                if (np.clip(product, least, most) == wanted).all():
                    return int(scale.view(np.uint32)), x_zero, y_zero
    return None
