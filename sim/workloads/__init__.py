"""What ``tilewright sim`` runs: photographs and matrices through the RTL, everything compared with the golden model."""

from importlib import import_module

__all__ = ["CONVOLVING", "ENGINE_THREADS", "EXTRAS", "MOVING", "MULTIPLYING", "NEEDS", "RUNNING", "SHARING", "SHORT",
           "WORKLOADS", "workload"]  # fmt: skip

#: Names in the order in which they run. The module of each (:func:`workload`) has a ``SUMMARY`` and a function
#: ``play(mover, photographs) -> Findings``, which leaves its figures in the mover.
MOVING = ("photo", "swizzle", "video", "borders", "convolution", "roundtrip")
#: The same for the processing engine; ``play`` takes a multiplier.
MULTIPLYING = ("dct", "gemm", "threads")
#: The same for the convolution engine; ``play`` takes a convolver.
CONVOLVING = ("stem",)
#: The same for a cluster of cores with their command processors; ``play`` takes a crew.
SHARING = ("cluster",)
#: The same for all engines and a command processor; ``play`` takes an ``Accelerator``.
RUNNING = ("network",)
#: Modules of workloads that are not in this folder.
_ELSEWHERE = {"network": "tilewright.tools.network.workload"}
WORKLOADS = (*MOVING, *MULTIPLYING, *CONVOLVING, *SHARING, *RUNNING)
#: What runs if nothing else is asked for, in the order in which it runs.
SHORT = ("photo", "convolution", "gemm")

#: Features of the mover that a workload needs.
NEEDS = {
    "convolution": ("im2col",),
    "cluster": ("im2col", "unaligned", "swizzle", "stores"),
    "roundtrip": ("interleave", "gather", "stores"),
}

#: Extra of the package that a workload needs beside that of the command.
EXTRAS = {"network": "network"}

#: Threads of the engine for a workload that does not take those of the preset, unless simulation is slow.
ENGINE_THREADS = {"threads": 64}


def workload(name):
    """The module of a workload, imported only now: it needs what the help of the command line does without."""
    return import_module(_ELSEWHERE.get(name, f"{__name__}.{name}"))
