"""What ``tilewright sim`` runs: photographs and matrices through the RTL, everything compared with the golden model."""

from importlib import import_module

from . import borders, cluster, convolution, dct, gemm, photo, roundtrip, stem, swizzle, threads, video

__all__ = ["CONVOLVING", "ENGINE_THREADS", "EXTRAS", "MOVING", "MULTIPLYING", "NEEDS", "RUNNING", "SHARING", "SHORT",
           "WORKLOADS", "workload"]  # fmt: skip

#: Modules by name, in the order in which they run. Each has a ``SUMMARY`` and a function ``play(mover, photographs) ->
#: Findings``, which leaves its figures in the mover.
MOVING = {"photo": photo, "swizzle": swizzle, "video": video, "borders": borders,
          "convolution": convolution, "roundtrip": roundtrip}  # fmt: skip
#: The same for the processing engine; ``play`` takes a multiplier.
MULTIPLYING = {"dct": dct, "gemm": gemm, "threads": threads}
#: The same for the convolution engine; ``play`` takes a convolver.
CONVOLVING = {"stem": stem}
#: The same for a cluster of cores with their command processors; ``play`` takes a crew.
SHARING = {"cluster": cluster}
#: The same for all engines and a command processor; ``play`` takes an ``Accelerator``. Names of modules, which are
#: imported when they are played, for they need more than the package that is installed for the others.
RUNNING = {"network": "tilewright.network.workload"}
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
ENGINE_THREADS = {"threads": threads.THREADS}


def workload(name):
    """The module of a workload."""
    known = MOVING | MULTIPLYING | CONVOLVING | SHARING
    return known[name] if name in known else import_module(RUNNING[name])
