"""Random parameters of each unit: any that it may be built with, of sizes that are simulated in minutes."""

from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TmauParams
from tilewright.spec.conv import ConvParams
from tilewright.spec.pe import MM_FAMILIES
from tilewright.spec.tmau_registers import FEATURES

__all__ = ["random_cluster", "random_conv", "random_pe", "random_tmau"]

#: Multiplications of 8 bits in a cycle of a random convolution engine at most; compilers take minutes for more.
_MOST_MACS = 256


def random_tmau(rng, needed=()):
    """A TmauParams with the features ``needed``, and most of the others."""
    bus_bytes = rng.choice([16, 32, 64])

    def draw():
        return TmauParams(
            addr_width=rng.choice([20, 24, 31, 32, 33, 40, 48, 57, 64]),
            bus_bytes=bus_bytes,
            max_outstanding=_power(rng, 4, 64),
            max_burst=_power(rng, 1, 64),
            queue_depth=_power(rng, 2, 8),
            cache_entries=_power(rng, 1, 8),
            commands_in_flight=_power(rng, 2, 32),
            exchange_bytes=_power(rng, 128, 1024),
            processors=rng.choice([1, 1, 2, 4]),
            features=tuple(name for name in FEATURES if name in needed or rng.random() < 0.8),
            smem=_smem(rng, rng.choice([4, 8])),
        )

    return _legal(draw)


def random_pe(rng):
    """A PeParams."""
    return PeParams(
        threads=rng.randint(4, 17),
        regs=2 * rng.randint(8, 48),
        factor_regs=rng.choice([1, 2]),
        uniform_regs=rng.randint(8, 16),
        segments=_power(rng, 2, 16),
        pages=_power(rng, 2, 64),
        mm_in_flight=_power(rng, 2, 16),
        types=_types(rng, 3),
        smem=_smem(rng, rng.choice([4, 8])),
        dsp_adders=rng.choice([True, False]),
    )


def random_conv(rng, types=None):
    """A ConvUnitParams, of ``types`` if they are given."""

    def draw():
        params = ConvParams(
            row_bytes=_power(rng, 16, 64),
            slaves=_power(rng, 1, 8),
            units=_power(rng, 1, 8),
            feature_rows=_power(rng, 2, 128),
            weight_rows=rng.randint(2, 16),
            weight_bytes=_power(rng, 256, 16384),
            results=_power(rng, 1, 32),
            queue_depth=_power(rng, 2, 8),
            rotation=rng.random() < 0.7,
            types=types or _types(rng, 2),
            function_table=rng.random() < 0.7,
            zero_first=rng.random() < 0.7,
        )
        if params.peak > _MOST_MACS:
            raise ValueError(params)
        return ConvUnitParams(params, _smem(rng, 8))

    return _legal(draw)


def random_cluster(rng):
    """A ClusterParams of access units, half of the time with a cache."""
    tmau, cores = random_tmau(rng, ("windows",)), rng.choice([1, 2, 3])
    if rng.random() < 0.5:
        return ClusterParams(cores, CoreParams(tmau))
    l2 = L2Params(_power(rng, 1024, 16384), _power(rng, 1, 4), _power(rng, 32, 64))
    return ClusterParams(cores, CoreParams(tmau), l2)


def _smem(rng, chunks):
    return SmemParams(_power(rng, 4096, 32768), chunks, rng.choice([2, 4, 8]))


def _types(rng, most):
    return tuple(rng.sample(MM_FAMILIES, rng.randint(1, most)))


def _power(rng, low, high):
    """A power of two."""
    return 1 << rng.randint(low.bit_length() - 1, high.bit_length() - 1)


def _legal(draw):
    """The first that is not refused: sizes depend on each other."""
    while True:
        try:
            return draw()
        except ValueError:
            pass
