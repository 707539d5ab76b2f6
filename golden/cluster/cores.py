"""The cores of a cluster with all of their engines: a program for each, side by side (docs/cluster.md, "Programs")."""

from ..core.machine import Core

__all__ = ["Cores"]


class Cores:
    """Cores whose command processors run programs at the same time. Only at their waits they wait for each other.

    Parameters
    ----------
    cluster : Cluster
        Their access units and memories.
    **options
        As of ``Core``, but for what the cluster has: the same for all cores.

    Attributes
    ----------
    cores : list of Core
    """

    def __init__(self, cluster, **options):
        self.cores = [
            Core(machine.gmem, machine.smem, tmau=machine, number=number, **options)
            for number, machine in enumerate(cluster.cores)
        ]

    def run(self, programs):
        """Runs programs from their first words to their ends, in turns of a word; returns the record of each core.

        Parameters
        ----------
        programs : sequence of (int, int) or None
            For each core the address of its program and the number of words; None: it runs none.

        Returns
        -------
        list of ProgramRecord or None
            None: the program came to its end, or there was none.

        Raises
        ------
        DeadlockError
            If programs are left, without a watchdog, and all of them wait. Each one that has a watchdog stops.
        """
        if len(programs) != len(self.cores):
            raise ValueError(f"programs must be of {len(self.cores)} cores, not of {len(programs)}")
        running = {core: core.turns(*program) for core, program in zip(self.cores, programs, strict=True) if program}
        stuck = None
        while running:
            waiting = []
            for core, turns in list(running.items()):
                try:
                    waiting.append(turns.send(stuck) is None)
                except StopIteration:
                    del running[core]
                    waiting.append(False)
            # All waited before this turn, and in it nothing has changed.
            stuck = all(waiting) or None
        return [core.record if program else None for core, program in zip(self.cores, programs, strict=True)]
