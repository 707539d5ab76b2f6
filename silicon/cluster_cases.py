"""Random cases of several cores for silicon: commands of every kind, and what only clusters have."""

import random

from tilewright.spec.fields import spoken

from .cases import BLOCK_REDUCTIONS, Maker, random_cases, turns

__all__ = ["KINDS", "random_cases_of_kinds", "random_cluster_cases"]

#: Cores of a case. Questions have other numbers of cores (docs/silicon.md).
_CORES = (2, 2, 4, 4, 8)


def random_cluster_cases(seed, count):
    """Yields ``count`` cases as a case file has them, but for ``expect``; equal arguments give equal cases."""
    rng = random.Random(f"cores {seed}")
    for entry in random_cases(f"cluster_{seed}", count):
        cores = rng.choice(_CORES)
        yield entry | {"cores": cores, "commands": [_delivered(rng, cores, command) for command in entry["commands"]]}


def _delivered(rng, cores, command):
    """A command with its issuer and, in two of three commands that can have them, the cores in which its data land."""
    command = command | {"core": rng.randrange(cores)}
    from_shared = "dst" in command and command["src"][0] == "shared"
    lands = command["op"] == "load" or command.get("dst", [None])[0] == "shared"
    if not lands or rng.random() < 1 / 3:
        return command
    if from_shared:
        return command | {"dst": [*command["dst"], rng.randrange(cores)]}
    return command | {"multicast": rng.randrange(1, 1 << cores)}


#: What the cases of :func:`random_cases_of_kinds` are about: loads to several cores; copies to the shared memory of
#: another core; arrivals at the barrier of another core; loads after prefetches of the same bytes.
KINDS = ("multicast", "remote_copy", "arrival", "prefetch")

_SHARED_REDUCTIONS = tuple((op, element) for memory, op, element in BLOCK_REDUCTIONS if memory == "shared")


def random_cases_of_kinds(seed, each):
    """Yields ``each`` cases of each of ``KINDS``, in turn, as :func:`random_cluster_cases` does."""
    rng, used = random.Random(f"kinds {seed}"), turns()
    for number in range(each):
        for kind in KINDS:
            yield _ClusterMaker(rng, used).case(f"{kind}_{seed}_{number}", kind)


class _ClusterMaker(Maker):
    """Makes one case of ``KINDS``."""

    def case(self, name, kind):
        self._cores = self._rng.choice(_CORES)
        return super().case(name, kind) | {"cores": self._cores}

    def _multicast(self):
        """A tile, pixels or a block for several cores, or for one that is not the issuer."""
        rng = self._rng
        if rng.random() < 3 / 4:
            self._tensor("load", next(self._turns["element"]))
        else:
            self._blocks_of("global", "shared")
        core = rng.randrange(self._cores)
        mask = rng.choice([mask for mask in range(1, 1 << self._cores) if mask != 1 << core])
        self._commands[-1] |= {"core": core, "multicast": mask}

    def _remote_copy(self):
        """Bytes that differ from core to core: a core loads a block, another gets a part of it, and then a third."""
        rng, core = self._rng, self._rng.randrange(self._cores)
        size = 16 * rng.randint(1, 128)
        first = self._block("shared", size)
        self._commands.append(
            {"op": "copy_block", "src": ["global", self._block("global", size)], "dst": ["shared", first], "size": size,
             "core": core}
        )  # fmt: skip
        for _ in range(rng.choice([1, 1, 2])):
            receiver = rng.choice([other for other in range(self._cores) if other != core])
            skipped = 16 * rng.randrange(size // 16)
            first, size = first + skipped, 16 * rng.randint(1, (size - skipped) // 16)
            destination = self._block("shared", size)
            copy = {"op": "copy_block", "src": ["shared", first], "dst": ["shared", destination, receiver],
                    "size": size, "core": core}  # fmt: skip
            if rng.random() < 1 / 3:
                op, element = rng.choice(_SHARED_REDUCTIONS)
                copy |= {"reduce": spoken(op), "element": spoken(element)}
            self._commands.append(copy)
            core, first = receiver, destination

    def _arrival(self):
        """Arrivals of some cores at once: within a phase, or equal parts of phases, some of which they complete."""
        rng = self._rng
        for _ in range(rng.randint(1, 4)):
            arriving = rng.randrange(1, 1 << self._cores)
            most = rng.choice([4, 64, 4096, rng.choice([4096, (1 << 20) - 1])])
            if rng.random() < 1 / 2:
                value = rng.randint(1, most)
                expected = value * rng.randint(1, min(4, ((1 << 20) - 1) // value))
            else:
                expected = rng.randint(arriving.bit_count(), max(arriving.bit_count(), most))
                value = rng.randint(1, expected // arriving.bit_count())
            self._commands.append({"op": "arrive", "core": rng.randrange(self._cores), "from": arriving,
                                   "expected": expected, "value": value})  # fmt: skip

    def _prefetch(self):
        """A prefetch by one core, then a load of the same bytes by any core."""
        super()._prefetch()
        rng, prefetch = self._rng, self._commands[-1]
        prefetch["core"] = rng.randrange(self._cores)
        load = prefetch | {"core": rng.randrange(self._cores)}
        if prefetch["op"] == "prefetch":
            load |= {"op": "load", "smem": 0}
        else:
            destination = ["shared", self._block("shared", prefetch["size"])]
            load |= {"op": "copy_block", "src": ["global", prefetch["src"]], "dst": destination}
        self._commands.append(load)
