"""Where the barriers of a program lie in shared memory (docs/network.md, "The program")."""

from .lower.places import BLOCK

__all__ = [
    "JOBS", "LOADS", "MEETINGS", "SCRATCH", "TOKEN", "TURNS", "barriers_of_cores", "cast_barrier", "groups_of",
    "job_barrier", "load_barrier", "ready_barrier",
]  # fmt: skip

#: Barriers of loads, and pairs of barriers of jobs: of their ends, and of when their weights have been read. They lie
#: one after the other from address 0 of shared memory on; then the block that fences load.
LOADS, JOBS = 8, 3
SCRATCH = 8 * (LOADS + 2 * JOBS)
#: In a cluster: 16 bytes that are copied to signal to cores, then barriers of meetings, then for each group of cores
#: those of cores that are ready for a multicast, and of multicasts. Each kind takes turns. All must be ready for one
#: arrival before any program starts.
TOKEN = SCRATCH + BLOCK
MEETINGS = range(TOKEN + BLOCK, TOKEN + BLOCK + 16, 8)
TURNS = 4
#: The most groups of cores with multicasts.
_MOST_GROUPS = 12


def load_barrier(place):
    """Where the barrier of a load for this core alone lies."""
    return 8 * (place % LOADS)


def job_barrier(number):
    """Where the first of a job's pair of barriers lies."""
    return 8 * (LOADS + 2 * (number % JOBS))


def ready_barrier(cast):
    """Where the first core of a group counts others that are ready for a multicast.

    A core is not ready for a multicast before it has got the one that had the same barrier.
    """
    return _of_group(cast.group) + 8 * (cast.turn % TURNS)


def cast_barrier(cast):
    """Where the barrier of a multicast lies in each core of its group."""
    return ready_barrier(cast) + 8 * TURNS


def groups_of(cores):
    """How many groups of a cluster's cores may have multicasts of their own."""
    return min((1 << cores) - cores - 1, _MOST_GROUPS)


def barriers_of_cores(cores):
    """Addresses of the barriers by which cores wait for each other, a range: none of one core alone."""
    return range(MEETINGS.start, _of_group(groups_of(cores)), 8) if cores > 1 else range(TOKEN, TOKEN)


def _of_group(group):
    return MEETINGS.stop + 16 * TURNS * group
