"""What a job becomes before it runs: the values of ``PlanLayout``, worked out in Python."""

from tilewright.golden.conv.placement import parts_of, result_bytes, shape_of
from tilewright.golden.conv.plan import ConvPlan
from tilewright.golden.spec.conv.job import ConvOperation
from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.layouts import PostJobLayout

__all__ = ["plan_of", "plan_values"]


def plan_of(fields, params):
    """The :class:`~tilewright.golden.conv.plan.ConvPlan` that the fields of a legal job ask for."""
    return ConvPlan(shape_of(fields), params, 1 << fields["granularity"], fields["merge"], bool(fields["raster"]))


def plan_values(fields, params):
    """The members of a ``PlanLayout``.

    Parameters
    ----------
    fields : dict
        Of a job that has passed its checks.
    params : ConvUnitParams

    Returns
    -------
    dict
    """
    plan, shape = plan_of(fields, params.conv), shape_of(fields)
    kind, operation = MmType(fields["type"]), ConvOperation(fields["operation"])
    size, bits = params.smem.size_bytes, 8 * kind.bytes
    x_signed, k_signed = not kind & 2, not kind & 1
    maximum, pool = operation == ConvOperation.MAX_POOL, operation not in (operation.CONVOLUTION, operation.DEPTHWISE)
    pixel = shape.channels * kind.bytes
    merged, columns = plan.merge > 1, plan.shape.kernel[0]
    unit = pixel if merged else 1
    (left, top), (right, down), (dw, dh) = shape.padding, shape.stride, shape.dilation

    def number(zero, signed):
        return zero - (signed and zero >> bits - 1) * (1 << bits)

    def by_turns(element):
        return element if kind.bytes == 2 else element * 0x101

    def follow(start, point, line, image):
        return {
            name: each % size
            for name, each in zip(("start", "point", "line", "image"), (start, point, line, image), strict=True)
        }

    pitch = fields["x_pitch"]
    least = x_signed << bits - 1
    passes = plan.blocks if operation.lanes else -(-shape.out_channels // (CHANNELS_AT_ONCE * params.conv.slaves))
    row_bytes = shape.kernel[1] * plan.steps * plan.blocks * plan.block_bytes
    parts = parts_of(fields)
    return {
        "wide": kind.bytes == 2,
        "x_signed": x_signed,
        "k_signed": k_signed,
        "lanes": operation.lanes,
        "maximum": maximum,
        "pool": pool,
        "raster": fields["raster"],
        "merged": merged,
        "bias": fields["bias"] and not maximum,
        "table": "table" in parts,
        "signal": fields["signal"],
        "granularity": fields["granularity"],
        "result_log2": result_bytes(fields).bit_length() - 1,
        "x_fill": by_turns(least if maximum else fields["x_zero"]),
        "k_fill": by_turns(1 if pool else fields["k_zero"]),
        "x_zero": 0 if maximum else number(fields["x_zero"], x_signed),
        "k_zero": 0 if pool else number(fields["k_zero"], k_signed),
        "x": follow(fields["x"] - top * pitch[1] - left * pitch[0], right * pitch[0], down * pitch[1], pitch[2]),
        "x_step": plan.merge * dw * pitch[0] % size,
        "x_row": dh * pitch[1] % size,
        "position": {"start": -left * unit, "point": right * unit},
        "position_step": plan.merge * unit if merged else dw,
        "position_end": shape.width * unit,
        "row": {"start": -top, "line": down},
        "row_step": dh,
        "row_end": shape.height,
        "k": fields["k"] % size,
        "k_pitch": fields["k_pitch"] % size,
        "k_step": plan.pixel_bytes % size,
        "k_row": columns * pixel % size,
        "pixel_bytes": plan.pixel_bytes,
        "last_bytes": (columns - (plan.steps - 1) * plan.merge) * pixel,
        "last_block": plan.blocks - 1,
        "last_step": plan.steps - 1,
        "last_kernel_row": shape.kernel[1] - 1,
        "last_pass": passes - 1,
        "stays": row_bytes <= params.conv.weight_bytes // CHANNELS_AT_ONCE,
        "table_address": fields["table"] % size,
        "y": follow(fields["y"], *fields["y_pitch"]),
        "addend": follow(fields["addend"], *fields["addend_pitch"]),
        "out_channels": shape.out_channels,
        "last_column": shape.out_width - 1,
        "last_line": shape.out_height - 1,
        "last_image": shape.batch - 1,
        "barrier": fields["barrier"] % size,
        "tag": fields["tag"],
        "post": {name: fields[name] for name, _ in PostJobLayout()},
    }
