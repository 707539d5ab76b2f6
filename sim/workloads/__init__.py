"""The workloads of ``tilewright sim``: photographs and matrices on the RTL, all compared with the golden model."""

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
#: The workloads that run by default, in the order in which they run.
SHORT = ("photo", "convolution", "gemm")

#: Features of the mover that a workload needs.
NEEDS = {
    "convolution": ("im2col",),
    "cluster": ("im2col", "unaligned", "swizzle", "stores"),
    "roundtrip": ("interleave", "gather", "stores"),
}

#: The extra that a workload needs in addition to the command's.
EXTRAS = {"network": "network"}

#: Threads of the engine for workloads that do not use the preset's number, unless simulation is slow.
ENGINE_THREADS = {"threads": 64}


def workload(name):
    """The module of a workload. It is imported here because it needs packages that the help of the command does not."""
    return import_module(_ELSEWHERE.get(name, f"{__name__}.{name}"))
