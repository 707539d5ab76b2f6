"""The core that a program is made for."""

from dataclasses import dataclass, field, replace

from tilewright.errors import UsageError
from tilewright.golden import CONV_PRESETS, ConvParams, PeSizes
from tilewright.golden.arguments import instance, integer, power_of_two, truth
from tilewright.spec.cluster import MOST_CORES

from .barriers import barriers_of_cores
from .lower.places import LINE, padded

__all__ = ["MACHINES", "Machine", "machine_of", "machine_of_core"]


@dataclass(frozen=True)
class Machine:
    """The sizes of a core that decide how a network is cut.

    Attributes
    ----------
    conv : ConvParams
        Parameters of the convolution engine, whose types must include ``i8``.
    smem_bytes : int
        Bytes of shared memory.
    bus_bytes : int
        Bytes that the bus reads, and writes, per cycle.
    latency : int
        Expected latency of memory in cycles. Only expected cycles depend on it.
    unaligned : bool
        Whether the access unit transfers boxes whose number of channels is not a multiple of 16.
    local_copies : bool
        Whether the access unit copies within shared memory, by which cores of a cluster signal to each other.
    outstanding : int
        Most bursts of either direction that the access unit has in flight.
    burst : int
        Most bus words of a burst.
    descriptors : int
        How many descriptors the access unit holds.
    pe : PeSizes or None
        Sizes of the processing engine; None: no kernels.
    cores : int
        Cores of a cluster, 1 to 16. ``bus_bytes`` are of the port that all of them share.
    ports : int
        How many such ports a cluster has. The hardware has one; more are for estimates, and only expected cycles depend
        on them.
    separate : bool
        Each core computes inputs of its own. Otherwise all of them share the work.
    """

    conv: ConvParams = field(default_factory=ConvParams)
    smem_bytes: int = 128 * 1024
    bus_bytes: int = 64
    latency: int = 100
    unaligned: bool = True
    local_copies: bool = True
    outstanding: int = 128
    burst: int = 16
    descriptors: int = 8
    pe: PeSizes | None = field(default_factory=PeSizes)
    cores: int = 1
    ports: int = 1
    separate: bool = False

    def __post_init__(self):
        instance("conv", self.conv, ConvParams)
        if self.pe is not None:
            instance("pe", self.pe, PeSizes)
        for name in ("bus_bytes", "outstanding", "burst", "descriptors"):
            power_of_two(name, getattr(self, name))
        for name, low in (("smem_bytes", 1), ("latency", 0), ("ports", 1)):
            integer(name, getattr(self, name), low)
        integer("cores", self.cores, 1, MOST_CORES)
        for name in ("unaligned", "local_copies", "separate"):
            truth(name, getattr(self, name))
        if "i8" not in self.conv.types:
            raise ValueError(f"networks are computed in bytes: conv.types must have 'i8', not {self.conv.types!r}")

    @property
    def reserved(self):
        """Bytes at the beginning of shared memory in which no buffer may lie: barriers, and what fences load."""
        return padded(barriers_of_cores(self.cores).stop, LINE)

    @property
    def shared(self):
        """Whether several cores share the work."""
        return self.cores > 1 and not self.separate

    @property
    def peak(self):
        """Multiplications of bytes that the convolution engines of all cores do in a cycle."""
        return self.cores * self.conv.peak


_UNIT = PeSizes(4, 32, segments=8, pages=32, kernel_words=64, lookup_words=256)
_ECP5 = PeSizes(8, 128, segments=8, pages=64, types=("i8", "i16"), units=("alu", "div", "lookup"))
_LEAN = PeSizes(types=("i8", "i16"), units=())
#: The presets of a core by their names.
MACHINES = {
    "unit": Machine(CONV_PRESETS["unit"], 16 * 1024, 16, outstanding=4, burst=4, descriptors=2, pe=_UNIT),
    "ecp5": Machine(CONV_PRESETS["ecp5"], 32 * 1024, 16, descriptors=4, pe=_ECP5),
    "default": Machine(),
    "lean": Machine(CONV_PRESETS["ecp5"], unaligned=False, local_copies=False, pe=_LEAN),
    "full": Machine(
        CONV_PRESETS["full"], 256 * 1024, outstanding=512, descriptors=16, pe=PeSizes(256, segments=32, pages=1024)
    ),
}


def machine_of(preset, settings=(), cores=1):
    """The Machine of a core of a preset with some parameters changed, each a ``Setting`` of any of its engines.

    ``cores`` of them are a cluster.

    UsageError if no program of a network can run there.
    """
    for setting in settings:
        if setting.path == "tmau.features":
            raise UsageError(f"--set {setting}: programs of networks need the features of their preset")
    from tilewright.sim.session.core import accelerator_params  # imports the hardware

    return replace(machine_of_core(accelerator_params(preset, settings)), cores=cores)


def machine_of_core(params):
    """The Machine of a core with all engines, ``CoreParams``, or of a cluster, ``ClusterParams``.

    UsageError if no network runs there.
    """
    core, cores = getattr(params, "core", params), getattr(params, "cores", 1)
    tmau = core.tmau
    sizes = core.smem.size_bytes, tmau.bus_bytes
    pe = core.pe and PeSizes(**{name: getattr(core.pe, name) for name in PeSizes.__dataclass_fields__})
    reads = {"outstanding": tmau.max_outstanding, "burst": tmau.max_burst, "descriptors": tmau.cache_entries}
    try:
        return Machine(core.conv.conv, *sizes, **reads, unaligned=tmau.has("unaligned"), pe=pe,
                       local_copies=tmau.has("local_copies"), cores=cores)  # fmt: skip
    except ValueError as error:
        raise UsageError(f"no network runs on this core: {error}") from None
