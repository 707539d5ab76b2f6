"""Features of a TMAU (docs/tmau.md, "Features"): what hardware may be built without."""

from ..fields import Field, one_line
from .descriptor import Element

__all__ = ["FEATURES", "FEATURE_FIELDS", "FLOAT_SUMS", "HOST_WINDOWS", "features"]

#: Features in the order of their bits in register ``features``, and what each stands for.
FEATURES = {
    "im2col": "Descriptors in im2col mode.",
    "interleave": "Descriptors with 16-byte or 32-byte interleave.",
    "unaligned": "Descriptors with the bit unaligned.",
    "gather": "In tile mode, traversals other than 1, and the bit gather0.",
    "swizzle": "Descriptors with a swizzle.",
    "stores": "Whatever writes global memory.",
    "reductions_global": "Reductions into global memory, and REPLACE, which is made of them.",
    "reductions_shared": "Reductions into shared memory.",
    "reductions_float": "Reductions of f16, bf16 and f32.",
    "lanes": "LANES.",
    "local_copies": "Copies within one memory.",
    "windows": "The windows that confine commands.",
    "tf32": "Descriptors with elements of tf32, which loads round.",
}

#: Windows of a processor, which no command needs, and their bits in the same register: the highest ones.
HOST_WINDOWS = {"command_window": 30, "barrier_window": 31}

#: Bits of register ``features``.
FEATURE_FIELDS = (
    *(Field(name, bit, 1, doc) for bit, (name, doc) in enumerate(FEATURES.items())),
    Field("command_window", HOST_WINDOWS["command_window"], 1, "Commands are written in the region ``commands``."),
    Field("barrier_window", HOST_WINDOWS["barrier_window"], 1, "Barriers are operated on in the region ``barriers``."),
)

#: Elements whose reductions are floating-point.
FLOAT_SUMS = (Element.F16, Element.BF16, Element.F32)

#: Features, and of which others they need at least one.
_NEEDS = {
    "reductions_global": ("stores",),
    "reductions_float": ("reductions_global", "reductions_shared"),
    "local_copies": ("stores",),
}


def features(names):
    """A list of features as a tuple in their order; TypeError or ValueError if there is no such hardware."""
    if not isinstance(names, list | tuple):
        raise TypeError(f"features must be a list or tuple, not {one_line(names)}")
    for name in names:
        if not isinstance(name, str) or name not in FEATURES:
            raise ValueError(f"features must be of {', '.join(FEATURES)}, not {one_line(name)}")
    for name, needed in _NEEDS.items():
        if name in names and not set(needed) & set(names):
            raise ValueError(f"feature {name} needs {' or '.join(needed)}")
    return tuple(name for name in FEATURES if name in names)
