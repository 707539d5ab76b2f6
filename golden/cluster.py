"""A cluster without cycles: access units and memories, programs of its cores, and convolutions (docs/cluster.md)."""

import numpy as np

from tilewright.spec import BARRIER, COMMAND, COMMAND_FIELD, FORMATS, LINE_BYTES, BarrierOp, Error, Opcode, Space
from tilewright.spec.cluster import DELIVERY, MOST_CORES, ClusterError

from .arguments import integer, listed, member, packed, room
from .core.implicit_gemm import ImplicitGemm
from .core.implicit_plan import plan_implicit
from .core.machine import Core
from .core.program import program_bytes, program_word
from .memory import GlobalMemory
from .tmau.bus_errors import BusError
from .tmau.descriptor import Refusal
from .tmau.machine import ErrorRecord, Machine

__all__ = ["Cluster", "ClusterGemm", "Cores", "delivery_bits"]


def delivery_bits(cores=None, source_core=None):
    """Bits to set in a packed LOAD or COPY_BLOCK: the cores that receive its data, and the core whose memory it reads.

    Parameters
    ----------
    cores : int, sequence of int or None
        A mask, or numbers of cores. None: the issuer alone.
    source_core : int or None
        None: the issuer.
    """
    values = {}
    if cores is not None:
        if isinstance(cores, list | tuple | set | frozenset | range | np.ndarray):
            numbers = [
                integer("cores", core, 0, MOST_CORES - 1, description="made of numbers of cores") for core in cores
            ]
            cores = sum(1 << core for core in set(numbers))
        values |= {"multicast": 1, "cores": integer("cores", cores, 0, (1 << MOST_CORES) - 1)}
    if source_core is not None:
        values |= {"remote_source": 1, "source_core": integer("source_core", source_core, 0, MOST_CORES - 1)}
    return DELIVERY.pack(**values)


class Cluster:
    """The access units of a cluster, command by command; each is complete when its call returns.

    Parameters
    ----------
    gmem : Memory
        Global memory of all cores.
    smems : sequence of uint8 arrays
        The shared memory of each core, all of one size, changed in place.
    **options
        Of each ``Machine``.

    Attributes
    ----------
    cores : list of Machine
        Each also has the masks ``reach`` and ``accepts`` (docs/cluster.md, "Isolation"), and ``stopped``: whether it
        refuses every command ("Stopping one core"). They may be changed.
    """

    def __init__(self, gmem, smems, **options):
        integer("the number of shared memories", len(listed("smems", smems)), 1, MOST_CORES)
        self.cores = [_Core(self, number, gmem, smem, options) for number, smem in enumerate(smems)]
        sizes = {len(smem) for smem in smems}
        if len(sizes) > 1:
            raise ValueError(f"shared memories of a cluster have one size, not {', '.join(map(str, sorted(sizes)))}")

    def execute(self, core, word):
        """Runs one packed command of a core; returns as ``Machine.execute``, for a multicast the bytes of one receiver.

        Each core has its own error records.
        """
        return self._core(core).execute(word)

    def execute_on(self, core, descriptor, word):
        """Runs a packed command on a packed descriptor, instead of one in memory; returns as :meth:`execute`."""
        return self._core(core).run_on(descriptor, word)

    def barrier(self, core, op, address, value=0, of=None):
        """An operation by ``core`` on a barrier of core ``of`` (None: its own); returns as ``Machine.barrier``."""
        issuer = self._core(core)
        owner = issuer if of is None else self._core(of)
        if owner is issuer:
            return issuer.barrier(op, address, value)
        reaches = member("op", BarrierOp, op) == BarrierOp.ARRIVE and issuer.reach >> owner.number & 1
        if reaches and owner.lets_arrive(issuer, address):
            return owner.barrier(op, address, value)
        issuer.errors.append(ErrorRecord(Error.BARRIER_OPERATION, 0, 0, address))
        return None

    def _core(self, number):
        return self.cores[integer("core", number, 0, len(self.cores) - 1)]


class _Core(Machine):
    """A core of a cluster; ``delivery`` has the fields ``DELIVERY`` of the current command."""

    def __init__(self, cluster, number, gmem, smem, options):
        super().__init__(gmem, smem, **options)
        self._cluster, self.number, self.stopped = cluster, number, False
        self.reach = self.accepts = (1 << MOST_CORES) - 1

    def execute(self, word):
        self.delivery = self._delivery(word)
        return super().execute(word)

    def run_on(self, descriptor, word):
        """Runs a packed command on a packed descriptor."""
        self.delivery = self._delivery(word)
        command = COMMAND.unpack(word)
        return self._recorded(command, self._stopped() or self._transfer_on(command, descriptor))

    def _run(self, command):
        return self._stopped() or super()._run(command)

    def _stopped(self):
        """The refusal of every command if the core is stopped, or None."""
        return Refusal(ClusterError.STOPPED, 0, 0) if self.stopped else None

    def _delivery(self, word):
        """The fields ``DELIVERY`` of a command, which the only core of a cluster ignores."""
        return DELIVERY.unpack(packed("word", word, COMMAND.bits) if len(self._cluster.cores) > 1 else 0)

    def takes_from(self, issuer):
        """Whether the core ``issuer`` may write and read here."""
        return issuer is self or bool(self.accepts >> issuer.number & 1)

    def lets_arrive(self, issuer, address):
        """Whether the core ``issuer`` may arrive at the barrier at an address here."""
        exists = 0 <= address <= len(self.smem) - BARRIER.bytes and not address % BARRIER.bytes
        return exists and self.takes_from(issuer) and self.windows.hold_shared(address, BARRIER.bytes)

    def _receivers(self, command):
        """Mask of the cores whose shared memory a command writes."""
        if command["opcode"] == Opcode.COPY_BLOCK and command["destination_space"] == Space.GLOBAL:
            return 0
        multicast = command["opcode"] != Opcode.LANES and self.delivery["multicast"]
        return self.delivery["cores"] if multicast else 1 << self.number

    def _source_core(self, command):
        """The number of the core whose shared memory a command reads, or None."""
        if command["opcode"] != Opcode.COPY_BLOCK or command["source_space"] == Space.GLOBAL:
            return None
        return self.delivery["source_core"] if self.delivery["remote_source"] else self.number

    def _is_apart(self, command):
        source = self._source_core(command)
        return source is not None and not self._receivers(command) >> source & 1

    def _undeliverable(self, command):
        receivers, source = self._receivers(command), self._source_core(command)
        lands = command["opcode"] == Opcode.LOAD or command["destination_space"] == Space.SHARED
        named = receivers | (0 if source is None else 1 << source)
        allowed = (1 << len(self._cluster.cores)) - 1 & (self.reach | 1 << self.number)
        if (lands and not receivers) or named & ~allowed:
            return Refusal(ClusterError.CORES, 0, 0)
        if source in (None, self.number) or not command["size"]:
            return None
        owner = self._cluster.cores[source]
        if owner.takes_from(self) and owner.windows.hold_shared(command["source"], command["size"]):
            return None
        owner.keep_refusal(command, "source")
        return BusError(ClusterError.REMOTE, 1 << source)

    def _source_owner(self, command):
        source = self._source_core(command)
        return self if source is None else self._cluster.cores[source]

    def _receiving(self, command):
        return [core for core in self._cluster.cores if self._receivers(command) >> core.number & 1]

    def _deliver(self, command, name, touched, write, count, marks=None, reduced_bytes=0):
        refused = sum(
            1 << core.number
            for core in self._receiving(command)
            if not core.receive(self, command, name, touched, write, count, marks, reduced_bytes)
        )
        return BusError(ClusterError.REMOTE, refused) if refused else count

    def _spoil(self, command, touched):
        for core in self._receiving(command):
            first, end = core.open_to(self)
            core.open_bytes.spoil(touched[(touched >= first) & (touched < end)])

    def open_to(self, issuer):
        """Addresses here that the core ``issuer`` may write: the first, and the first after them."""
        if not self.takes_from(issuer):
            return 0, 0
        first, last = self.windows.shared or (0, len(self.smem) - 1)
        return first // LINE_BYTES * LINE_BYTES, (last // LINE_BYTES + 1) * LINE_BYTES

    def receive(self, issuer, command, name, touched, write, count, marks, reduced_bytes):
        """Accepts the data of a command; returns whether all bytes were accepted. Arguments as in ``_deliver``."""
        first, end = self.open_to(issuer)
        allowed = (touched >= first) & (touched < end)
        if not allowed.all():
            before = self.smem.copy()
            write(self.smem)
            self.smem[:first], self.smem[end:] = before[:first], before[end:]
            self.open_bytes.write(touched[allowed], None if marks is None else marks[allowed], reduced_bytes)
            self.keep_refusal(command, name)
            return False
        write(self.smem)
        self.open_bytes.write(touched, marks, reduced_bytes)
        if command["signal"] and not self.windows.hold_shared(command["barrier"], BARRIER.bytes):
            self.keep_refusal(command, "barrier")
            return False
        self._signal(command, count)
        return True

    def keep_refusal(self, command, name):
        """Records that the field ``name`` of another core's command would leave the window here."""
        field = COMMAND_FIELD + FORMATS[command["opcode"]].index(name)
        self.errors.append(ErrorRecord(Error.WINDOW, command["tag"], field, 0))


class Cores:
    """Cores whose command processors run programs concurrently; programs synchronise only where they wait.

    Parameters
    ----------
    cluster : Cluster
        Their access units and memories.
    **options
        Of each ``Core``, except those that the cluster has.

    Attributes
    ----------
    cores : list of Core
    """

    def __init__(self, cluster, **options):
        self.cores = [
            Core(machine.gmem, machine.smem, tmau=machine, number=number, **options)
            for number, machine in enumerate(cluster.cores)
        ]

    def run(self, programs, limit=None):
        """Runs programs to their ends, alternately by one word; returns the record of each core.

        Parameters
        ----------
        programs : sequence of (int, int) or None
            For each core the address of its program and the number of words, or None.
        limit : int or None
            The host stops each program after this number of words.

        Returns
        -------
        list of ProgramRecord or None
            None: the program reached its end, or there was none.

        Raises
        ------
        DeadlockError
            If all remaining programs wait, without a watchdog. A program with a watchdog stops.
        """
        if len(programs) != len(self.cores):
            raise ValueError(f"programs must be of {len(self.cores)} cores, not of {len(programs)}")
        running = {core: core.turns(*program, limit)
                   for core, program in zip(self.cores, programs, strict=True) if program}  # fmt: skip
        stuck = None
        while running:
            waiting = []
            for core, turns in list(running.items()):
                try:
                    waiting.append(turns.send(stuck) is None)
                except StopIteration:
                    del running[core]
                    waiting.append(False)
            # All programs already waited before this turn, in which nothing has changed.
            stuck = all(waiting) or None
        return [core.record if program else None for core, program in zip(self.cores, programs, strict=True)]


class ClusterGemm(ImplicitGemm):
    """An :class:`ImplicitGemm` whose tiles are distributed over the cores of a cluster, with a program for each.

    Core 0 loads the kernel into all cores by multicasts. Each core awaits it at its barrier, which must be initialised
    for one arrival before the programs start. If there are fewer tiles than cores, the last cores have no program.

    Parameters
    ----------
    x, k, type, **options
        As in ``ImplicitGemm``, and its attributes ``shape``, ``plan`` and ``memory``.
    cores : int
        1 to 16.
    smem_bytes : int
        Bytes of the shared memory of each core, all of which its program may use.

    Attributes
    ----------
    programs : list of list of int
        Packed, of each core with one.
    starts : list of (int, int) or None
        For each core the address of its program in ``memory`` and the number of words; None: it has no program.
    barrier : int
        Address of the barrier of each core.
    kernel_bytes : int
        Bytes of the kernel in each core.

    Raises
    ------
    TypeError, ValueError
        As in ``ImplicitGemm``, and if the kernel does not fit shared memory as a whole.
    """

    def __init__(self, x, k, type, cores, *, smem_bytes=128 * 1024, **options):  # noqa: A002
        self._cores = integer("cores", cores, 1, MOST_CORES)
        self.barrier = room("smem_bytes", smem_bytes) - LINE_BYTES
        if self.barrier < 0:
            raise ValueError(f"smem_bytes must be {LINE_BYTES} or more, not {smem_bytes}")
        super().__init__(x, k, type, smem_bytes=self.barrier, **options)

    def run(self):
        """The sums as the golden cluster computes them; RuntimeError if a program stops with an error."""
        smems = [np.zeros(self._smem_bytes + LINE_BYTES, np.uint8) for _ in range(self._cores)]
        cluster = Cluster(GlobalMemory(self.memory.copy()), smems)
        for core in range(self._cores):
            cluster.barrier(core, BarrierOp.INIT, self.barrier, 1)
        records = Cores(cluster, pe=self.sizes).run(self.starts)
        if any(records):
            raise RuntimeError(f"a program stopped: {records}")
        return self.result(cluster.cores[0].gmem.data)

    def _planned(self):
        plan = plan_implicit(self.shape, self.kind, self.sizes, self._smem_bytes, self._cores)
        if plan.parts > 1:
            raise ValueError(f"the kernel must fit the shared memory of a core as a whole, not in {plan.parts} parts")
        return plan

    def _place_programs(self):
        plan = self.plan
        shares = [tiles.tolist() for tiles in np.array_split(range(plan.tiles), min(self._cores, plan.tiles))]
        multicast = delivery_bits(range(len(shares)))
        kernel = [word | multicast for word in self._kernel_loads(0, signal=1, barrier=self.barrier)]
        self.kernel_bytes = len(kernel) * self._page_columns(plan.b) * plan.gemm.n * self.kind.bytes
        awaited = [
            program_word("barrier", operation=operation, barrier=self.barrier, value=value)
            for operation, value in (("expect_tx", self.kernel_bytes), ("arrive", 1), ("try_wait", 0))
        ]
        self.programs = [self._program(tiles, [] if core else kernel, awaited) for core, tiles in enumerate(shares)]
        self.starts = [(self._place(program_bytes(words)), len(words)) for words in self.programs]
        self.starts += [None] * (self._cores - len(shares))
