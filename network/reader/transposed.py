"""Transposed convolutions (docs/network.md, "Phases")."""

import numpy as np

from ..arithmetic import product_scale
from ..attributes import ConvTranspose
from .layout import in_one_row
from .operator import reads
from .products import for_each, real_bias

__all__ = []


@reads("ConvTranspose")
@in_one_row(1)
def _conv_transpose(op, reading):
    """ConvTranspose of floats: x, w, bias."""
    real = op.real(0)
    x, groups = reading.values[real.name], op.take("group", 1)
    weights = op.real_weights(1, axis=1 if groups == 1 else None)
    if len(x.shape) != 4 or weights.array.ndim != 4:
        raise op.refusal(
            f"its input is {list(x.shape)} and its kernel {list(weights.array.shape)}: only two dimensions of space "
            "are supported"
        )
    channels, share, *kernel = weights.array.shape
    if groups < 1 or channels % groups or x.shape[1] != channels:
        raise op.refusal(f"{x.shape[1]} channels in {groups} groups do not fit a kernel of {list(weights.array.shape)}")
    if op.take("kernel_shape", tuple(kernel)) != tuple(kernel):
        raise op.refusal(f"its attribute 'kernel_shape' is not that of its kernel, {kernel}")
    op.refuse_if(weights.scale.size > 1 and groups > 1, "its kernel has several scales, and it has several groups")
    bias = real_bias(op, 2, real, weights) if op.has(2) else None
    stride, dilation, pad, size = _placed(op, kernel, x.shape[2:])
    outputs = share * groups
    scale, zero = (for_each(op, part, outputs, what) for part, what in ((weights.scale, "scales"),
                                                                        (weights.zero, "zero points")))  # fmt: skip
    counts = for_each(op, bias.counts.reshape(-1) if bias else np.zeros(1, np.int32), outputs, "biases")
    shape = (x.shape[0], outputs, *size)

    def finish(output, y, clamp):
        scales = product_scale(real.quantity.scale, scale, y.scale)
        op.refuse_if(not np.isfinite(scales).all(), "its scales give a factor that binary32 does not hold")
        attributes = ConvTranspose(
            weight=np.array(weights.array, order="C"), x_zero=real.quantity.zero, w_zero=zero, bias=counts,
            scale=scales, y_zero=y.zero, stride=stride, pad=pad, dilation=dilation, groups=groups,
            minimum=clamp[0], maximum=clamp[1],
        )  # fmt: skip
        reading.emit(op, (real.name,), output, attributes, shape, y.dtype)

    reading.defer(op, shape, finish)


def _placed(op, kernel, given):
    """Stride, dilation, rows and columns that are cut off before the result, and its size."""
    strides, dilations = (op.sizes(name, (1, 1), 1) for name in ("strides", "dilations"))
    pads, more = op.sizes("pads", (0, 0, 0, 0), 0), op.sizes("output_padding", (0, 0), 0)
    how, wanted = op.take("auto_pad", "NOTSET", str), op.take("output_shape", (), int)
    if any(each >= max(pair) for each, *pair in zip(more, strides, dilations, strict=True)):
        raise op.refusal(f"its output_padding {list(more)} is not less than its strides or dilations")
    op.refuse_if(how not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"its attribute 'auto_pad' is {how!r}")
    listed = any(each.name == "pads" for each in op.proto.attribute)  # ONNX Runtime refuses zeros too
    op.refuse_if(how != "NOTSET" and listed, f"it has pads and auto_pad {how!r}")
    op.refuse_if(len(wanted) not in (0, 2), f"its attribute 'output_shape' is {list(wanted)}, and must be 2 numbers")
    before, sizes = [], []
    for axis in range(2):
        whole = (given[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + more[axis]
        if how.startswith("SAME") or wanted:
            size = wanted[axis] if wanted else given[axis] * strides[axis]
            cut = max(whole - size, 0)
            before.append(cut - cut // 2 if how == "SAME_LOWER" or not how.startswith("SAME") else cut // 2)
        else:
            size = whole - pads[axis] - pads[axis + 2]
            before.append(pads[axis])
        op.refuse_if(size < 1, f"its output would have {size} rows or columns")
        sizes.append(size)
    return strides, dilations, tuple(before), tuple(sizes)
