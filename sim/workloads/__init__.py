"""What ``tilewright sim`` runs: photographs and matrices through the RTL, everything compared with the golden model."""

from . import borders, convolution, dct, gemm, photo, roundtrip, stem, swizzle, threads, video

__all__ = ["CONVOLVING", "ENGINE_THREADS", "MOVING", "MULTIPLYING", "NEEDS", "SHORT", "WORKLOADS"]

#: Modules by name, in the order in which they run. Each has a ``SUMMARY`` and a function ``play(mover, photographs) ->
#: Findings``, which leaves its figures in the mover.
MOVING = {"photo": photo, "swizzle": swizzle, "video": video, "borders": borders,
          "convolution": convolution, "roundtrip": roundtrip}  # fmt: skip
#: The same for the processing engine; ``play`` takes a multiplier.
MULTIPLYING = {"dct": dct, "gemm": gemm, "threads": threads}
#: The same for the convolution engine; ``play`` takes a convolver.
CONVOLVING = {"stem": stem}
WORKLOADS = MOVING | MULTIPLYING | CONVOLVING
#: What runs if nothing else is asked for, in the order in which it runs.
SHORT = ("photo", "convolution", "gemm")

#: Features of the mover that a workload needs.
NEEDS = {"convolution": ("im2col",), "roundtrip": ("interleave", "gather", "stores")}

#: Threads of the engine for a workload that does not take those of the preset, unless simulation is slow.
ENGINE_THREADS = {"threads": threads.THREADS}
