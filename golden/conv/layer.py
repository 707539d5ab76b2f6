"""Layers of networks, given as arrays: a job, and the shared memory that it needs."""

from dataclasses import dataclass

import numpy as np

from tilewright.spec import LINE_BYTES
from tilewright.spec.conv import FUNCTION_BYTES, JOB, ConvOperation, ConvOutput, ConvParams

from ..arguments import array, instance, integer, member, numbers, pair, shown, truth
from ..dot_product import mm_type
from ..memory import check_shared
from .job import result_bytes
from .machine import Conv, job_word
from .plan import ConvPlan, plan_convolution
from .shape import SIZES, ConvShape

__all__ = ["ConvLayer", "PostProcessing", "convolve"]

_PLAN = {"block_bytes", "merge", "raster"}  # attributes of a ConvPlan
#: Types of results, except accumulators in fp32 and elements of X.
_RESULTS = {
    ConvOutput.RAW: "<i4", ConvOutput.U8: "u1", ConvOutput.S8: "i1", ConvOutput.F16: "<f2", ConvOutput.BF16: "<u2",
}  # fmt: skip


@dataclass(frozen=True)
class PostProcessing:
    """Steps from accumulators to results (docs/conv.md, "Requantisation", "Types").

    Attributes
    ----------
    output : ConvOutput or str
    bias : sequence, optional
        For each channel: integers modulo 2^32, or float32.
    scale : sequence of float, optional
        For each channel, as binary32; required for ``u8`` and ``s8``.
    zero : int
        Zero point of the results.
    minimum, maximum : int, optional
        Limits of results; by default those of the type.
    addend : array, optional
        Second operand of the addition, of the shape and type of the results.
    ratio : tuple of float
        Factors of the first and of the second operand.
    offset : float
    add_minimum, add_maximum : int, optional
    zero_first : bool
        Whether the zero point is added before rounding.
    function : array of 256 bytes, optional
        The LUT of a function: the byte that replaces each result of 8 bits, by the byte of the result. Also for
        ``max_pool`` of 8 bits.
    """

    output: ConvOutput = ConvOutput.RAW
    bias: tuple | np.ndarray | None = None
    scale: tuple | np.ndarray | None = None
    zero: int = 0
    minimum: int | None = None
    maximum: int | None = None
    addend: np.ndarray | None = None
    ratio: tuple[float, float] = (1.0, 1.0)
    offset: float = 0.0
    add_minimum: int | None = None
    add_maximum: int | None = None
    zero_first: bool = False
    function: np.ndarray | None = None

    def __post_init__(self):
        truth("zero_first", self.zero_first)
        if self.function is not None:
            table = array("function", self.function)
            if table.shape != (FUNCTION_BYTES,) or table.dtype.itemsize != 1:
                raise ValueError(f"function must have {FUNCTION_BYTES} elements of a byte, not {shown(table)}")

    def fields(self):
        """Fields of a job, except addresses."""
        output = member("output", ConvOutput, self.output)
        fields = {"output": output, "bias": self.bias is not None, "function": self.function is not None}
        if not output.quantised:
            return fields
        low, high = (-128, 127) if output == ConvOutput.S8 else (0, 255)
        for name in ("minimum", "add_minimum", "maximum", "add_maximum"):
            value, end = getattr(self, name), low if "min" in name else high
            fields[name] = integer(name, end if value is None else value, low, high) & 0xFF
        fields |= {"y_zero": integer("zero", self.zero, low, high) & 0xFF, "zero_first": int(self.zero_first)}
        if self.addend is not None:
            fields |= {"add": 1, "ratio": _bits("ratio", self.ratio, (2,)).tolist(),
                       "offset": int(_bits("offset", self.offset, ()))}  # fmt: skip
        return fields

    def table(self, kind, channels):
        """The table of channels, uint32 of shape (channels, 2), or None."""
        quantised = member("output", ConvOutput, self.output).quantised
        if quantised and self.scale is None:
            raise ValueError("scale must be given for requantised results")
        if self.bias is None and not quantised:
            return None
        table = np.zeros((channels, 2), np.uint32)
        if self.bias is not None:
            biases = _bits("bias", self.bias) if kind.is_float else numbers("bias", self.bias) & 0xFFFFFFFF
            table[:, 0] = _per_channel("bias", biases, channels)
        if quantised:
            table[:, 1] = _per_channel("scale", _bits("scale", self.scale), channels)
        return table


def _bits(name, values, shape=None):
    """Floats as the raw bits of binary32; TypeError for other kinds, ValueError unless they have the ``shape``."""
    if isinstance(values, str | bytes | dict | set) or values is None:
        raise TypeError(f"{name} must be floats, not {shown(values)}")
    try:
        with np.errstate(over="ignore"):
            floats = np.asarray(values, np.float32)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be floats, not {shown(values)}") from None
    if shape is not None and floats.shape != shape:
        raise ValueError(f"{name} must be {'one float' if shape == () else f'{shape[0]} floats'}, not {shown(values)}")
    return floats.view(np.uint32)


def _per_channel(name, values, channels):
    """``values``, if there is one for each channel or one for all."""
    if values.shape not in ((), (1,), (channels,)):
        raise ValueError(f"{name} must have a number for each of the {channels} channels, not shape {values.shape}")
    return values


class ConvLayer:
    """A job, and shared memory with its operands.

    Parameters
    ----------
    x : array of shape (N, H, W, C)
        Raw bits, or numbers of the type.
    k : array or None
        Of shape (Co, Kh, Kw, C), for ``depthwise`` (C, Kh, Kw); None for pooling.
    type : MmType or str
        Of X and K, as for a product.
    kernel : tuple of int, optional
        Kh, Kw for pooling.
    stride, dilation : tuple of int
        For rows, for columns.
    padding : tuple of int
        Top, bottom, left, right.
    operation : ConvOperation or str
    zeros : tuple of int
        Zero points of X and of K.
    post : PostProcessing, optional
    params : ConvParams, optional
        Of the engine.
    plan : str or dict
        A rule of :func:`plan_convolution`, or ``block_bytes``, ``merge`` and ``raster`` of a :class:`ConvPlan`.
    gap : int
        Bytes of whole elements after each pixel of X in shared memory.

    Attributes
    ----------
    word : int
        The packed job.
    smem : uint8 array
    plan : ConvPlan
    """

    def __init__(self, x, k, type, *, kernel=None, stride=(1, 1), dilation=(1, 1), padding=(0, 0, 0, 0),  # noqa: A002
                 operation="convolution", zeros=(0, 0), post=None, params=None, plan="cost",
                 gap=0):  # fmt: skip
        self.kind, operation = mm_type(type), member("operation", ConvOperation, operation)
        post = PostProcessing() if post is None else instance("post", post, PostProcessing)
        params = ConvParams() if params is None else instance("params", params, ConvParams)
        zeros = pair("zeros", zeros)
        if operation == ConvOperation.MAX_POOL:
            post = PostProcessing(output=ConvOutput.ELEMENT, function=post.function)
        x, k = self._tensors(x, k, operation)
        self.gap = integer("gap", gap, 0, 65535)
        if gap % self.kind.bytes:
            raise ValueError(f"gap must be a multiple of the {self.kind.bytes} bytes of an element, not {gap!r}")
        fields = {"operation": operation, "type": self.kind, **post.fields()}
        kernel = kernel if k is None else k.shape[-3:-1]
        if kernel is None:
            raise ValueError("kernel must be given if there is no K")
        out_channels = x.shape[3] if operation.lanes else k.shape[0]
        table = post.table(self.kind, out_channels)
        self.shape = ConvShape.of(
            x.shape, out_channels, kernel, stride, padding, dilation, operation=operation,
            element_bytes=self.kind.bytes, result_bytes=result_bytes(fields), adjoin=not gap,
            table=table is not None, add="add" in fields, function=fields["function"],
        )  # fmt: skip
        addend = post.addend if "add" in fields else None
        self._check_addend(addend)
        planned = isinstance(plan, dict)
        if planned and (set(plan) - _PLAN or "block_bytes" not in plan):
            raise ValueError(f"plan must have block_bytes, and may have merge and raster, not {shown(plan)}")
        self.plan = ConvPlan(self.shape, params, **plan) if planned else plan_convolution(self.shape, params, plan)
        pixels = np.pad(x, [(0, 0)] * 3 + [(0, gap // self.kind.bytes)])
        if operation == ConvOperation.DEPTHWISE:
            k = np.moveaxis(k[..., 0], 0, -1)
        parts = {"x": pixels, "k": k, "table": table, "addend": addend, "function_table": post.function}
        self._lay_out({name: part for name, part in parts.items() if part is not None})
        mask = (1 << 8 * self.kind.bytes) - 1
        self.word = job_word(
            **fields, **self._places, **self._sizes(), raster=self.plan.raster, merge=self.plan.merge,
            granularity=self.plan.block_bytes.bit_length() - 1, x_zero=zeros[0] & mask, k_zero=zeros[1] & mask,
        )  # fmt: skip
        self._output = member("output", ConvOutput, fields["output"])

    def result(self, smem):
        """The results in ``smem``, of shape (N, Ho, Wo, Co).

        Accumulators are int32 or float32; bf16 and elements of X are raw bits.
        """
        shape = self.shape
        element = f"<u{self.kind.bytes}"
        dtype = np.dtype(element if self._output == ConvOutput.ELEMENT else _RESULTS[self._output])
        if self._output == ConvOutput.RAW and self.kind.is_float:
            dtype = np.dtype("<f4")
        check_shared(smem, written=False)
        if len(smem) < len(self.smem):
            raise ValueError(f"smem must have the {len(self.smem)} bytes of the layer or more, not {len(smem)}")
        first = self._places["y"]
        results = smem[first : first + shape.bytes_written].view(dtype)
        return results.reshape(shape.batch, shape.out_height, shape.out_width, shape.out_channels)

    def _tensors(self, x, k, operation):
        """X and K as raw bits."""
        pooling = operation in (ConvOperation.SUM_POOL, ConvOperation.MAX_POOL)
        if pooling != (k is None):
            raise ValueError(f"k must {'not ' if pooling else ''}be given for {operation.name.lower()}")
        dimensions = 3 if operation.lanes else 4
        for name, tensor, count in (("x", x, 4), ("k", k, dimensions)):
            if tensor is None and name == "k":
                continue
            if array(name, tensor).ndim != count or tensor.dtype.itemsize != self.kind.bytes:
                raise TypeError(
                    f"{name} must have {count} dimensions and elements of {self.kind.bytes} bytes, not {shown(tensor)}"
                )
        if k is not None:
            channels = k.shape[0] if operation.lanes else k.shape[3]
            if channels != x.shape[3]:
                raise ValueError(f"k must have the {x.shape[3]} channels of x, not {channels}")
            # With a last dimension of one, rows and columns are the same dimensions of each K.
            k = k[..., np.newaxis] if operation.lanes else k
        raw = f"<u{self.kind.bytes}"
        return np.ascontiguousarray(x).view(raw), None if k is None else np.ascontiguousarray(k).view(raw)

    def _check_addend(self, addend):
        """Refuses a second operand without the shape and the type of the results."""
        if addend is None:
            return
        shape = (self.shape.batch, self.shape.out_height, self.shape.out_width, self.shape.out_channels)
        if array("addend", addend).shape != shape or addend.dtype.itemsize != self.shape.result_bytes:
            raise ValueError(
                f"addend must have the shape {shape} of the results and elements of a byte, not {shown(addend)}"
            )

    def _lay_out(self, parts):
        """Puts tensors into shared memory one after another."""
        raw = {name: np.frombuffer(np.ascontiguousarray(part).tobytes(), np.uint8) for name, part in parts.items()}
        self._places, end = {}, 0
        for name, size in [*((name, len(data)) for name, data in raw.items()), ("y", self.shape.bytes_written)]:
            self._places[name] = end
            end += -(-size // LINE_BYTES) * LINE_BYTES
        self.smem = np.zeros(end, np.uint8)
        for name, data in raw.items():
            self.smem[self._places[name] :][: len(data)] = data

    def _sizes(self):
        """Fields of shapes and pitches; all tensors are contiguous, except an X with gaps."""
        shape, element = self.shape, self.kind.bytes
        results = shape.out_channels * shape.result_bytes, shape.out_width, shape.out_height
        pixels = {
            "x": (shape.channels * element + self.gap, shape.width, shape.height), "y": results, "addend": results,
        }  # fmt: skip
        sizes = {
            f"{name}_pitch": (pixel, pixel * width, pixel * width * height)
            for name, (pixel, width, height) in pixels.items()
        }
        lanes = shape.operation.lanes
        sizes["k_pitch"] = shape.channels * element * (1 if lanes else shape.taps)
        names = (*SIZES, "kernel", "stride", "dilation", "padding")
        return sizes | {name: getattr(shape, name) for name in names}


def convolve(x, k, type, **options):  # noqa: A002 - as in a job
    """The results of a layer, bit for bit; operands and options are those of :class:`ConvLayer`.

    Returns
    -------
    ndarray of shape (N, Ho, Wo, Co)
        As in :meth:`ConvLayer.result`.
    """
    layer = ConvLayer(x, k, type, **options)
    smem = layer.smem.copy()
    engine = Conv(smem, layer.plan.params)
    if not engine.execute(layer.word):
        code, field, _ = engine.errors[0]
        raise ValueError(f"the engine refuses the job: {code.name}, field {JOB.fields[field].name}")
    return layer.result(smem)
