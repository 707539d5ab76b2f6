"""What ``tilewright sim`` runs: photographs moved through the RTL, every byte compared with the golden model."""

from . import borders, convolution, photo, roundtrip, swizzle, video

__all__ = ["WORKLOADS"]

#: Modules by name, in the order in which they run. Each has a ``SUMMARY`` and a function
#: ``play(mover, photographs) -> Findings``, which leaves its figures in the mover.
WORKLOADS = {"photo": photo, "swizzle": swizzle, "video": video, "borders": borders,
             "convolution": convolution, "roundtrip": roundtrip}  # fmt: skip
