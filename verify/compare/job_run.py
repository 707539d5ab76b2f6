"""Jobs of the convolution engine on hardware and golden: shared memory, endings, and registers."""

from collections import Counter

import numpy as np

from tilewright.golden import Conv, ConvPlan
from tilewright.golden.conv.job import shape_of
from tilewright.golden.smem import Barrier
from tilewright.hw.bus.axi4_lite import address_map
from tilewright.hw.conv.top import CONV_REGISTER_ADDR_WIDTH
from tilewright.sim.asm.conv import disassemble_job
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.spec import BarrierOp
from tilewright.spec.conv import CONV_REGISTERS, JOB, ConvError

from .differences import memory_differences, smallest, unequal

__all__ = ["GoldenJobs", "JobRun"]

_REGISTERS = {register.name: register.format for register in CONV_REGISTERS}
_ASKED = ("jobs", "steps", "results_written", "error", "error_count", "irq_status", "status")
_CLEARED = (
    ("control", _REGISTERS["control"].pack(clear_counters=1, clear_error=1)),
    ("irq_status", _REGISTERS["irq_status"].pack(error=1, done=1)),
)
#: Bytes of shared memory after the contents that a test gives.
_REST = 205


class GoldenJobs:
    """Jobs that the golden model has executed one after the other.

    Parameters
    ----------
    words : sequence of int
    smem : uint8 array
        Shared memory before; it does not change.
    params : ConvParams

    Attributes
    ----------
    smem : uint8 array
        Shared memory after.
    endings : list of (ConvError, int, int)
        Code, field and tag of each job.
    registers : dict of str to int
        Values of registers that follow from jobs alone, if they were cleared before.
    """

    def __init__(self, words, smem, params):
        self.smem = smem.copy()
        engine, steps, results, self.endings = Conv(self.smem, params), 0, 0, []
        for word in words:
            fields = JOB.unpack(word)
            ended = engine.execute(word)
            code, field, tag = (ConvError.NONE, 0, fields["tag"]) if ended else engine.errors[-1]
            self.endings.append((code, field, tag))
            if code in (ConvError.NONE, ConvError.BARRIER):
                shape = shape_of(fields)
                plan = ConvPlan(shape, params, 1 << fields["granularity"], fields["merge"], bool(fields["raster"]))
                steps += plan.mac_cycles
                results += shape.points * shape.out_channels
        errors = [ending for ending in self.endings if ending[0]]
        code, field, tag = errors[0] if errors else (0, 0, 0)
        values = {
            "irq_status": {"error": bool(errors), "done": len(errors) < len(self.endings)},
            "error": {"code": code, "field": field, "tag": tag},
            "status": {"idle": 1, "error": bool(errors), "queue_level": 0},
        }
        self.registers = {"jobs": len(words), "steps": steps, "results_written": results, "error_count": len(errors)}
        self.registers |= {name: _REGISTERS[name].pack(**fields) for name, fields in values.items()}


class JobRun:
    """Compares jobs with golden. Those of a run are queued back to back, and work in one shared memory.

    Parameters
    ----------
    session : Session
        Of a core with a convolution engine alone.

    Attributes
    ----------
    jobs, cycles : int
        So far.
    endings : Counter
        Of ConvError.
    """

    def __init__(self, session):
        self._session = session
        regions = address_map(conv=CONV_REGISTER_ADDR_WIDTH, smem=session.params.smem.addr_width)
        self._base = regions["smem"].base
        self.jobs = self.cycles = 0
        self.endings = Counter()

    def run(self, words, smem, *, host=(), barriers=()):
        """Runs jobs; returns one sentence for each difference from golden.

        Parameters
        ----------
        words : sequence of int
        smem : uint8 array
            First bytes of shared memory.
        host : sequence of (int,) or (int, int)
            Accesses of the host meanwhile, in order: it reads the word at an address of shared memory, or writes it.
            No job may write words that are read, or touch words that are written.
        barriers : sequence of (BarrierOp, int, int)
            Operations meanwhile, in order, on barriers that no job touches.
        """
        session = self._session
        before = np.full(session.params.smem.size_bytes, _REST, np.uint8)
        before[: len(smem)] = smem
        try:
            accesses = [(self._base + address, *word) for address, *word in host]
            run = session.run(jobs=words, registers=accesses, barriers=barriers, preload=before)
            answers = session.run(registers=[*((name,) for name in _ASKED), *_CLEARED]).registers
        except SimulationError as error:
            return [str(error)]
        golden = GoldenJobs(words, before, session.params.conv.conv)
        self.jobs += len(words)
        self.cycles += run.cycles
        self.endings.update(code for code, _, _ in golden.endings)
        expected = _answers(host, golden.smem) | _refusals(barriers, golden.smem)
        seen = {f"read {number} of the host": run.registers[number].data for number, what in enumerate(host)
                if len(what) == 1}  # fmt: skip
        seen |= {f"refusal of barrier operation {number}": answer.error for number, answer in enumerate(run.barriers)}
        seen |= {f"the end of job {number}": end[1:] for number, end in enumerate(run.jobs)}
        expected |= {f"the end of job {number}": end for number, end in enumerate(golden.endings)}
        seen |= {f"register {name}": answer.data for name, answer in zip(_ASKED, answers, strict=False)}
        expected |= {f"register {name}": golden.registers[name] for name in _ASKED}
        memory = session.shared_memory.read(0, len(before))
        sentences = memory_differences("shared memory", memory, golden.smem, before)
        return sentences + unequal({name: (value, expected[name]) for name, value in seen.items()})

    def report(self, words, smem):
        """Differences of as few of the jobs as still have any, and those jobs as text."""
        least = smallest(tuple(words), lambda some: bool(self.run(some, smem)))
        if least is None:
            return "the jobs differ no more when they run again"
        return "\n".join([*self.run(least, smem), *map(disassemble_job, least)])


def _answers(host, smem):
    """Words that the host reads, by name; words that it writes are put into the memory."""
    expected = {}
    for number, (address, *written) in enumerate(host):
        word = smem[address : address + 4].view("<u4")
        if written:
            word[0] = written[0]
        else:
            expected[f"read {number} of the host"] = int(word[0])
    return expected


def _refusals(barriers, smem):
    """Whether each operation is refused, by its name; those that are not change the memory."""
    expected = {}
    for number, (op, address, value) in enumerate(barriers):
        barrier, refused = Barrier.read(smem, address), False
        try:
            barrier.apply(BarrierOp(op), value)
        except ValueError:
            refused = True
        barrier.write(smem, address)
        expected[f"refusal of barrier operation {number}"] = refused
    return expected
