"""The tensor map: a descriptor in software, made from fields or from an array, checked, and packed to 128 bytes."""

import math
from dataclasses import InitVar, dataclass, field

import numpy as np

from tilewright.spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, L2Promotion, Mode, Swizzle
from tilewright.spec.fields import spoken

from ..arguments import integer, integers, member, no_member, shown, truth
from ..memory import as_bytes
from .descriptor import descriptor_rules, im2col_rules, word_rules, word_values

__all__ = ["DescriptorError", "TensorMap", "check_map"]

_ENUMS = {
    "element": (Element, Error.ELEMENT),
    "mode": (Mode, Error.NONE),
    "interleave": (Interleave, Error.INTERLEAVE),
    "swizzle": (Swizzle, Error.SWIZZLE),
    "fill": (Fill, Error.FILL),
    "l2_promotion": (L2Promotion, Error.NONE),
}
#: Element types by names of numpy and ml_dtypes types. tf32 has the numpy type of f32 and must be given explicitly.
_DTYPES = {
    **{f"{kind}{bits}": Element[f"{letter}{bits}"] for kind, letter in (("uint", "U"), ("int", "S"))
       for bits in (8, 16, 32, 64)},
    **{f"float{bits}": Element[f"F{bits}"] for bits in (16, 32, 64)},
    "bfloat16": Element.BF16,
    "float8_e4m3fn": Element.F8E4M3,
    "float8_e5m2": Element.F8E5M2,
}  # fmt: skip


class DescriptorError(ValueError):
    """A descriptor breaks a rule of docs/tmau.md, "Tensor descriptor".

    Attributes
    ----------
    code : spec.Error
        What hardware reports for it; NONE if no descriptor word can break the rule.
    field : str
        Name in ``DESCRIPTOR``.
    value
        The offending value, of one dimension if the field has several.
    """

    def __init__(self, code, field, value, sentence):
        super().__init__(sentence)
        self.code, self.field, self.value = code, field, value


@dataclass(frozen=True, kw_only=True, repr=False)
class TensorMap:
    """A tensor in global memory and the box that one command takes from it.

    Dimension 0 is the innermost everywhere. Enumerations are given as members or by name: ``"f16"``, ``"none"``,
    ``"128B"``. TypeError for a value of the wrong kind, ValueError for lists of wrong length, and its subclass
    :class:`DescriptorError` for a broken rule.

    Attributes
    ----------
    element : Element
    size : tuple of int
        Elements of each dimension; its length is the rank.
    stride : tuple of int
        Bytes from one index of dimension 1, 2, … to the next.
    box : tuple of int
        Elements of the box in each dimension; tile mode only.
    address : int
        Byte address of element (0, 0, …).
    traversal : tuple of int
        Step in each dimension; all 1 when left out.
    swizzle, interleave, fill, fill_constant, l2_promotion, mode, unaligned, gather0
        As in docs/tmau.md, "Tensor descriptor".
        ``fill={"constant": n}`` means ``fill="constant", fill_constant=n``.
    lower, upper : tuple of int
        Corners of the im2col bounding box, W first; im2col mode only, as are ``channels`` and ``pixels``.
    array : ndarray or None
        The array that the map was made from; comparisons ignore it.
    check : bool
        False: the rules are not checked, to make descriptors that hardware must refuse.
    """

    element: Element
    size: tuple
    stride: tuple = ()
    box: tuple = ()
    address: int = 0
    traversal: tuple = ()
    swizzle: Swizzle = Swizzle.NONE
    interleave: Interleave = Interleave.NONE
    fill: Fill = Fill.ZERO
    fill_constant: int = 0
    l2_promotion: L2Promotion = L2Promotion.NONE
    mode: Mode = Mode.TILE
    unaligned: bool = False
    gather0: bool = False
    lower: tuple = ()
    upper: tuple = ()
    channels: int = 1
    pixels: int = 1
    array: np.ndarray | None = field(default=None, repr=False, compare=False)
    check: InitVar[bool] = True

    def __post_init__(self, check):
        for name, value in _normalised(self).items():
            object.__setattr__(self, name, value)
        self._check_lengths()
        if check:
            broken = list(descriptor_rules(self))
            if not broken and self.mode == Mode.IM2COL:
                broken = list(im2col_rules(self))
            for violation in broken:
                raise DescriptorError(*violation)

    @classmethod
    def tiled(cls, array, *, box, element=None, **options):
        """A map of ``array`` for tiles of ``box``; numpy's last axis is dimension 0.

        The array may be a view with strides if they are legal and the last axis is contiguous. ``element`` reinterprets
        the bits as another type of the same size; ``options`` are fields of the map.
        """
        return cls(**_fields_of_array(array, element), box=box, **options)

    @classmethod
    def im2col(cls, array, *, pixels, channels=None, lower, upper, element=None, **options):
        """A map of activations (N, H, W, C), or with one or three spatial dimensions, for the taps of a convolution.

        Parameters
        ----------
        array : array or tuple of int
            As in :meth:`tiled`; or the shape of a contiguous one, which then needs ``element``.
        pixels : int
            Pixels of a command, 1 to 1024.
        channels : int, optional
            Channels of a pixel in a command; default: all.
        lower, upper : sequence of int
            Corners of the bounding box, W first: for a convolution with padding p and kernel size k, -p and
            p - (k - 1) · dilation.
        element, **options
            As in :meth:`tiled`: ``traversal=(1, step, step, 1)`` is the step of a convolution.
        """
        fields = (_fields_of_shape if isinstance(array, tuple) else _fields_of_array)(array, element)
        channels = fields["size"][0] if channels is None else channels
        corners = {"lower": lower, "upper": upper}
        return cls(**fields, mode=Mode.IM2COL, pixels=pixels, channels=channels, **corners, **options)

    def __repr__(self):
        """A call that makes the map again, without defaults."""
        shown = {"element": spoken(self.element), "size": self.size, "stride": self.stride, "box": self.box}
        for name in ("lower", "upper", "channels", "pixels") if self.mode == Mode.IM2COL else ():
            shown[name] = getattr(self, name)
        if any(step != 1 for step in self.traversal):
            shown["traversal"] = self.traversal
        for name in ("mode", "swizzle", "interleave", "fill", "l2_promotion"):
            if getattr(self, name):
                shown[name] = spoken(getattr(self, name))
        for name in ("address", "fill_constant", "unaligned", "gather0"):
            if getattr(self, name):
                shown[name] = getattr(self, name)
        return f"TensorMap({', '.join(f'{name}={value!r}' for name, value in shown.items() if value != ())})"

    @property
    def rank(self):
        """Number of dimensions."""
        return len(self.size)

    def pack(self):
        """The 128 bytes that hardware reads. ValueError if an unchecked value cannot be encoded."""
        values = {name: getattr(self, name) for name in _packed_fields(self.mode)}
        word = DESCRIPTOR.pack(version=DESCRIPTOR_VERSION, rank=self.rank, **values)
        return word.to_bytes(DESCRIPTOR.bytes, "little")

    @classmethod
    def unpack(cls, data):
        """The map of 128 packed bytes; DescriptorError if they break a rule."""
        data = as_bytes(data)
        if len(data) != DESCRIPTOR.bytes:
            raise ValueError(f"a descriptor must be {DESCRIPTOR.bytes} bytes, not {len(data)}")
        word = int.from_bytes(data.tobytes(), "little")
        for violation in word_rules(word):
            raise DescriptorError(*violation)
        values = word_values(word)
        return cls(**{name: getattr(values, name) for name in _packed_fields(values.mode)})

    def _check_lengths(self):
        """ValueError unless every list has the length that the rank needs."""
        im2col = self.mode == Mode.IM2COL
        corners = max(self.rank - 2, 0) if im2col else 0
        lengths = {
            "stride": max(self.rank - 1, 0),
            "box": 0 if im2col else self.rank,
            "traversal": self.rank,
            "lower": corners,
            "upper": corners,
        }
        for name, length in lengths.items():
            if len(getattr(self, name)) != length:
                kind = f"rank {self.rank} in {spoken(self.mode)} mode"
                raise ValueError(f"{name} must have {length} entries for {kind}, not {len(getattr(self, name))}")
        for name in ("channels", "pixels"):
            if not im2col and getattr(self, name) != 1:
                raise ValueError(f"{name} must be left out in tile mode, not {getattr(self, name)}")


def check_map(tmap):
    """TypeError unless ``tmap`` is a map."""
    if not isinstance(tmap, TensorMap):
        raise TypeError(f"tmap must be a TensorMap, not {shown(tmap)}")


def _fields_of_array(array, element):
    """Element, size, stride and array of a map of ``array``; ``element`` None: the element of its type."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array must be a numpy array, not {type(array).__name__}")
    if array.dtype.name not in _DTYPES or not array.dtype.isnative:
        raise TypeError(f"array must have a type that an element stands for, not {array.dtype}")
    if not array.size:
        raise ValueError(f"array must not be empty, with shape {array.shape}")
    element = _DTYPES[array.dtype.name] if element is None else _member("element", element)
    if element.bytes != array.itemsize:
        sentence = f"element {spoken(element)} takes {element.bytes} bytes, but one of the array {array.itemsize}"
        raise DescriptorError(Error.ELEMENT, "element", element, sentence)
    *outer, innermost = array.strides or (array.itemsize,)
    if innermost != array.itemsize and array.shape[-1] > 1:
        sentence = f"stride of dimension 0 must be the element's {array.itemsize} bytes, not {innermost}"
        raise DescriptorError(Error.STRIDE, "stride", innermost, sentence)
    return {"element": element, "size": array.shape[::-1], "stride": outer[::-1], "array": array}


def _fields_of_shape(shape, element):
    """The same for a contiguous array of ``shape``, outermost dimension first, without the array."""
    if element is None:
        raise ValueError(f"element must be given for the shape {shape}, which has no type")
    element, size = _member("element", element), integers("array", shape)[::-1]
    strides = (math.prod(size[: d + 1]) * element.bytes for d in range(len(size) - 1))
    return {"element": element, "size": size, "stride": tuple(strides)}


def _packed_fields(mode):
    """Names of the fields that ``mode`` uses, except rank and version."""
    other = ("box",) if mode == Mode.IM2COL else ("lower", "upper", "channels", "pixels")
    return [field.name for field in DESCRIPTOR.fields if field.name not in ("version", "rank", *other)]


def _normalised(t):
    """The fields of ``t`` with enumerations as members, lists as tuples of int, and all defaults."""
    values = {"fill": t.fill}
    if isinstance(t.fill, dict):
        if list(t.fill) != ["constant"]:
            sentence = f'fill must be a name or {{"constant": n}}, not {t.fill!r}'
            raise DescriptorError(Error.FILL, "fill", t.fill, sentence)
        values["fill"], values["fill_constant"] = Fill.CONSTANT, t.fill["constant"]
    for name in _ENUMS:
        values[name] = _member(name, values.get(name, getattr(t, name)))
    for name in ("size", "stride", "box", "traversal", "lower", "upper"):
        values[name] = integers(name, getattr(t, name))
    for name in ("address", "fill_constant", "channels", "pixels"):
        values[name] = integer(name, values.get(name, getattr(t, name)), description="made of integers")
    for name in ("unaligned", "gather0"):
        values[name] = truth(name, getattr(t, name))
    if t.array is not None and not isinstance(t.array, np.ndarray):
        raise TypeError(f"array must be a numpy array, not {shown(t.array)}")
    values["traversal"] = values["traversal"] or (1,) * len(values["size"])
    if not 0 <= values["fill_constant"] < 1 << 32:
        constant = values["fill_constant"]
        sentence = f"fill_constant must be 0 to 2^32 - 1, not {constant}"
        raise DescriptorError(Error.NONE, "fill_constant", constant, sentence)
    return values


def _member(name, value):
    """``value`` as a member of the enumeration of the field ``name``."""
    enum, code = _ENUMS[name]
    if isinstance(value, enum):
        return value
    if isinstance(value, str):
        try:
            return member(name, enum, value)
        except ValueError as error:
            raise DescriptorError(code, name, value, str(error)) from None
    raise DescriptorError(code, name, value, no_member(name, enum, value))
