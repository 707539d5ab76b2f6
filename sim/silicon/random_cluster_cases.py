"""Random replay cases of several cores: :mod:`.random_cases`, issued by any core, and landing in several or in others.

What only the TMAU has is not drawn: copies from another core's shared memory, and from shared memory to several cores.
"""

import random

from .random_cases import random_cases

__all__ = ["random_cluster_cases"]

#: Cores of a case. Other numbers of them are asked (docs/silicon.md).
_CORES = (2, 2, 4, 4, 8)


def random_cluster_cases(seed, count):
    """Yields so many cases as a case file has them, but for ``expect``; a function of its arguments alone."""
    rng = random.Random(f"cores {seed}")
    for entry in random_cases(f"cluster_{seed}", count):
        cores = rng.choice(_CORES)
        yield entry | {"cores": cores, "commands": [_delivered(rng, cores, command) for command in entry["commands"]]}


def _delivered(rng, cores, command):
    """A command with its issuer and, of three that can have them two, those in which its data land."""
    command = command | {"core": rng.randrange(cores)}
    from_shared = "dst" in command and command["src"][0] == "shared"
    lands = command["op"] == "load" or command.get("dst", [None])[0] == "shared"
    if not lands or rng.random() < 1 / 3:
        return command
    if from_shared:
        return command | {"dst": [*command["dst"], rng.randrange(cores)]}
    return command | {"multicast": rng.randrange(1, 1 << cores)}
