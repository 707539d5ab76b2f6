"""Windows over a feature map: where padding, strides and dilations of a model put them."""

from typing import NamedTuple

__all__ = ["Windows", "take_windows"]

#: Rows or columns of a feature map with its padding.
_MOST = 1 << 20


class Windows(NamedTuple):
    """Fields as those of ``Conv`` and ``Pool``, how many rows and columns of windows there are, and ``ceil_mode``."""

    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    dilation: tuple[int, int]
    count: tuple[int, int]
    ceil: bool = False


def take_windows(op, kernel, size, *, pool=False):
    """Takes the attributes of a node that say where its windows are.

    Parameters
    ----------
    op : Operator
    kernel, size : (int, int)
        Of the kernel and of the feature map.
    pool : bool
        Whether they are the windows of a pool. Then padding is smaller than a window, and SAME may not ask for less
        than no padding: ONNX Runtime shifts such windows, of which ONNX says nothing. For a convolution it is none.
    """
    strides = _list(op, "strides", (1, 1), 1)
    dilations = _list(op, "dilations", (1, 1), 1)
    pads = _list(op, "pads", (0, 0, 0, 0), 0)
    ceil = bool(op.take("ceil_mode", 0))
    how = op.take("auto_pad", "NOTSET", str)
    if how not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise op.refusal(f"its attribute 'auto_pad' is {how!r}, which is not supported")
    if how != "NOTSET" and any(pads):
        raise op.refusal(f"it has pads and auto_pad {how!r}")
    if pool and any(pad >= length for pad, length in zip(pads, (*kernel, *kernel), strict=True)):
        raise op.refusal(f"its padding {list(pads)} is not smaller than its window {list(kernel)}")
    if how.startswith("SAME") and max(dilations) > 1:
        raise op.refusal(f"auto_pad {how!r} is not supported with dilations")
    spans = [(length - 1) * step + 1 for length, step in zip(kernel, dilations, strict=True)]
    ends, counts = [], []
    for i in range(2):
        before, after = pads[i], pads[i + 2]
        if how.startswith("SAME"):
            total = (-(-size[i] // strides[i]) - 1) * strides[i] + spans[i] - size[i]
            if total < 0 and pool:
                raise op.refusal(f"auto_pad {how!r} is not supported where a stride leaves elements out at the end")
            total = max(total, 0)
            before = total // 2 if how == "SAME_UPPER" else -(-total // 2)
            after = total - before
        room = size[i] + before + after - spans[i]
        if room < 0:
            raise op.refusal(
                f"its window of {spans[i]} is larger than the feature map of {size[i]} with padding of {before + after}"
            )
        if size[i] + before + after > _MOST:
            raise op.refusal(f"its feature map of {size[i]} has padding of {before + after}: {_MOST:,} is the most")
        count = room // strides[i] + 1
        # The last window may reach out, but not begin in padding.
        if ceil and room % strides[i] and count * strides[i] < size[i] + before:
            count += 1
        after = max(after, (count - 1) * strides[i] + spans[i] - size[i] - before)
        ends.append((before, after))
        counts.append(count)
    (top, bottom), (left, right) = ends
    return Windows(strides, (top, left, bottom, right), dilations, tuple(counts), ceil)


def _list(op, name, default, least):
    values = op.take(name, default)
    if len(values) != len(default) or min(values) < least:
        raise op.refusal(
            f"its attribute {name!r} is {list(values)}, and must be {len(default)} numbers from {least} on"
        )
    return values
