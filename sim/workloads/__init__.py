"""The workloads of ``tilewright sim``: photographs and matrices on the RTL, all compared with the golden model."""

from importlib import import_module
from typing import NamedTuple

__all__ = ["SHORT", "WORKLOADS", "Workload", "names_on"]


class Workload(NamedTuple):
    """What a workload runs on, and where it is.

    Attributes
    ----------
    machine : str
        The engine, ``"tmau"``, ``"pe"`` or ``"conv"``; ``"cluster"``; or ``"accelerator"``, all engines.
    function : str
        Module, below this package if it begins with a point, and function, which takes the worker of the machine and
        the photographs; it returns Findings and leaves its figures in the worker.
    needs : tuple of str
        Features of the access unit.
    threads : int or None
        Threads of the engine, fewer than the preset's to save simulation time; None: as the preset has.
    extra : str or None
        The extra that it needs in addition to the command's.
    """

    machine: str
    function: str
    needs: tuple = ()
    threads: int | None = None
    extra: str | None = None

    def play(self, session, photographs, **options):
        """Runs it on a session of its machine; the :class:`Worker`, made with the options, and its Findings."""
        # Imported here: they need packages that the help of the command does not.
        worker = _found(_WORKERS[self.machine])(session, **options)
        return worker, _found(self.function)(worker, photographs)


def _found(name):
    module, _, attribute = name.partition(":")
    return getattr(import_module(module, __name__), attribute)


_WORKERS = {
    "tmau": ".mover:Mover",
    "pe": ".multiplier:Multiplier",
    "conv": ".convolver:Convolver",
    "cluster": ".crew:Crew",
    "accelerator": ".findings:Worker",
}

#: By name, in the order in which they run.
WORKLOADS = {
    "photo": Workload("tmau", ".tiles:play_photo"),
    "swizzle": Workload("tmau", ".layouts:play_swizzle"),
    "video": Workload("tmau", ".tiles:play_video"),
    "borders": Workload("tmau", ".tiles:play_borders"),
    "convolution": Workload("tmau", ".layouts:play_convolution", needs=("im2col",)),
    "roundtrip": Workload("tmau", ".layouts:play_roundtrip", needs=("interleave", "gather", "stores")),
    "dct": Workload("pe", ".products:play_dct"),
    "gemm": Workload("pe", ".products:play_gemm"),
    "threads": Workload("pe", ".products:play_threads", threads=64),
    "stem": Workload("conv", ".convolver:play_stem"),
    "cluster": Workload("cluster", ".crew:play_filters", needs=("im2col", "unaligned", "swizzle", "stores")),
    "network": Workload("accelerator", "tilewright.tools.network.workload:play_classes", extra="network"),
    "detector": Workload("accelerator", "tilewright.tools.network.workload:play_faces", extra="network"),
    "transformer": Workload("accelerator", "tilewright.tools.network.workload:play_digits", extra="network"),
    "spotter": Workload("accelerator", "tilewright.tools.network.workload:play_words", extra="network"),
}
#: The workloads that run by default, in the order in which they run.
SHORT = ("photo", "convolution", "gemm")


def names_on(machine):
    """Names of the workloads on a machine."""
    return [name for name, workload in WORKLOADS.items() if workload.machine == machine]
