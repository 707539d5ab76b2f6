"""The plan of a convolution job: the values of ``PlanLayout``, computed in Python."""

from tilewright.golden.conv.job import barriers_of, parts_of, result_bytes, shape_of
from tilewright.golden.conv.plan import ConvPlan
from tilewright.hw.conv.layouts import PostJobLayout
from tilewright.spec.conv import CHANNELS_AT_ONCE, ConvOperation
from tilewright.spec.pe import MmType

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

    def pitches(name):
        point, line, image = fields[f"{name}_pitch"]
        return point, line << plan.line_pairs, image

    pitch = fields["x_pitch"]
    least = x_signed << bits - 1
    x_fill, k_fill = by_turns(least if maximum else fields["x_zero"]), by_turns(1 if pool else fields["k_zero"])
    x_zero, k_zero = number(fields["x_zero"], x_signed), number(fields["k_zero"], k_signed)
    flags = {}
    if kind.is_float:
        x_zero = k_zero = 0
        infinite, one = (0xFF80, 0x3F80) if kind == MmType.BF16 else (0xFC00, 0x3C00)
        x_fill, k_fill = (infinite, 1) if maximum else (0, one if pool else 0)
    if params.floats:
        flags = {
            "floats": kind.is_float and not maximum,
            "brain": kind == MmType.BF16,
            "ordered": kind.is_float and maximum,
        }
    passes = plan.blocks if operation.lanes else -(-shape.out_channels // (CHANNELS_AT_ONCE * params.conv.slaves))
    row_bytes = shape.kernel[1] * plan.steps * plan.blocks * plan.block_bytes
    parts = parts_of(fields)
    planes, groups = columns, -(-shape.out_width // plan.group_points)
    if operation.lanes and plan.rotates:
        planes, groups = plan.planes, plan.line_words // plan.planes
    line, of_lanes = down, {"last_row": shape.out_height - 1}
    if operation.lanes:
        of_lanes |= {"last_plane": planes - 1, "last_group": groups - 1}
        of_lanes |= {"last_place": shape.out_width + (plan.reach if plan.rotates else 0) - 1}
    if operation.lanes and plan.keeps_lines:
        between, words = (plan.lane_rows - 1) * dh, plan.line_words
        line = 1
        of_lanes |= {"last_row": (plan.lane_lines - 1) * plan.lane_stride + between}
        for name, lines in (("row", dh), ("line", plan.lane_stride), ("image", between + 1)):
            of_lanes[f"{name}_words"] = lines * words % params.words
    return flags | {
        "wide": kind.bytes == 2,
        "x_signed": x_signed,
        "k_signed": k_signed,
        "lanes": operation.lanes,
        "maximum": maximum,
        "pool": pool,
        "raster": plan.crosses_lines,
        "keeps": operation.lanes and plan.keeps_lines,
        "kernel_stays": plan.kernel_stays,
        "merged": merged,
        "bias": fields["bias"] and not maximum,
        "table": "table" in parts,
        "signal": fields["signal"],
        "early": len(barriers_of(fields)) == 2,
        "granularity": fields["granularity"],
        "result_log2": result_bytes(fields).bit_length() - 1,
        "x_fill": x_fill,
        "k_fill": k_fill,
        "x_zero": 0 if maximum else x_zero,
        "k_zero": 0 if pool else k_zero,
        "x": follow(fields["x"] - top * pitch[1] - left * pitch[0], right * pitch[0], line * pitch[1], pitch[2]),
        "x_step": plan.merge * dw * pitch[0] % size,
        "x_row": dh * pitch[1] % size,
        "line_stride": down - 1,
        "stride": plan.lane_stride - 1,
        "pairs": plan.line_pairs,
        "alone": plan.line_pairs and shape.out_height % 2,
        "last_row_step": plan.lane_rows - 1,
        "position": {"start": -left * unit, "point": right * unit},
        "position_step": plan.merge * unit if merged else dw,
        "position_end": shape.width * unit,
        "row": {"start": -top, "line": line},
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
        **of_lanes,
        "last_pass": passes - 1,
        "stays": row_bytes <= params.conv.weight_bytes // CHANNELS_AT_ONCE,
        "table_address": fields["table"] % size,
        **{name: follow(fields[name], *pitches(name)) for name in ("y", "addend")},
        "second": {name: fields[f"{name}_pitch"][1] % size for name in ("y", "addend")},
        "out_channels": shape.out_channels,
        "last_column": shape.out_width - 1,
        "last_line": (plan.lane_lines if operation.lanes else shape.out_height) - 1,
        "last_image": shape.batch - 1,
        "barrier": fields["barrier"] % size,
        "tag": fields["tag"],
        "post": {name: fields[name] for name, _ in PostJobLayout()},
    }
