"""Everything that a comparison looks at: each field of a run that is right is made wrong, and the complaint must come.

A comparison that has stopped looking at something passes every other test.
"""

from dataclasses import replace

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.sim.harness.axi_channels import Rule, Wait
from tilewright.spec import Error
from tilewright.verify.compare.batch_run import RandomRun
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.compare.scoreboard import Scoreboard, refusal_differences
from tilewright.verify.random.batches import random_batches
from tilewright.verify.random.mixed import random_mixes

#: Its first batch has a consumer read.
SEED = 3


class Tampered:
    """A session that changes what comes out of its next run; everything else is the session's."""

    def __init__(self, session, change):
        self._session, self._change = session, change

    def __getattr__(self, name):
        return getattr(self._session, name)

    def run(self, commands=(), **options):
        run = self._session.run(commands, **options)
        # Scoreboard sets registers, and tries good commands, in runs of their own.
        if len(commands) and self._change:
            run, self._change = self._change(run), None
        return run


session = session_fixture("unit", engines=["tmau"])


def flipped(array, place=0):
    """A copy with one bit changed."""
    array = array.copy()
    array.reshape(-1)[place] ^= 1
    return array


def changed(items, number, **fields):
    return [item._replace(**fields) if index == number else item for index, item in enumerate(items)]


#: By what is made wrong: what it makes of a run, and part of the complaint.
ALWAYS = {
    "a rule of the bus": (lambda run: replace(run, violations=(Rule.AR_PAGE,)), "the bus broke AR_PAGE"),
    "a wait on the bus": (lambda run: replace(run, late=(Wait.RREADY,)), "the bus broke RREADY"),
    "the end of a command": (
        lambda run: replace(run, commands=changed(run.commands, 0, error=Error.WRITE)),
        "the error of command 0 is ",
    ),
    "the first byte": (lambda run: replace(run, shared=flipped(run.shared)), "shared memory differs in 1 bytes"),
    "the last byte": (lambda run: replace(run, shared=flipped(run.shared, -1)), "shared memory differs in 1 bytes"),
}
MEMORY = {
    "the first byte of memory": (
        lambda run: replace(run, memory=flipped(run.memory)),
        "global memory differs in 1 bytes",
    ),
    "the last byte of memory": (
        lambda run: replace(run, memory=flipped(run.memory, -1)),
        "global memory differs in 1 bytes",
    ),
}


def each(cases):
    return pytest.mark.parametrize(("change", "complaint"), cases.values(), ids=cases)


def complains(differences, complaint):
    return [sentence for sentence in differences if complaint in sentence]


def register(name, number):
    """A bit of the answer to a read of the register that comes so late."""

    def change(run):
        data = run.registers[number].data ^ 1
        return replace(run, registers=changed(run.registers, number, data=data))

    return {f"{name}, register {number}": (change, f"{name} is ")}


def requests(run):
    return replace(run, trace=run.trace._replace(request_address=run.trace.request_address + 64))


@each(
    ALWAYS
    | register("the error record", 0)
    | register("the error record", 1)
    | register("the error record", 2)
    | register("error_count", 3)
    | register("irq_status", 4)
    | register("commands", 5)
    | register("bytes", 6)
    | register("hits and misses", 7)
    | register("hits and misses", 8)
    | {
        "a refused operation": (
            lambda run: replace(run, barriers=changed(run.barriers, 0, error=True)),
            "the number of refused barrier operations",
        ),
        "a phase": (lambda run: replace(run, flips=run.flips[1:]), "the list of barriers that flipped"),
        "a read": (lambda run: replace(run, reads=flipped(run.reads)), "consumer read 0 of "),
        "a request": (requests, "the first other one is number 0"),
        "a request less": (
            lambda run: replace(run, trace=run.trace._replace(request_id=run.trace.request_id + 1)),
            "0 bus words were asked for",
        ),
    }
)
def test_of_random_batches(session, change, complaint):
    run = RandomRun(Tampered(session, change))
    batch = next(random_batches(SEED, session.params.tmau, 40))
    assert complains(run.run(batch), complaint)
    assert RandomRun(session).run(batch) == []


def swapped(run):
    """The last command ended first."""
    done = min(stamp.done for stamp in run.commands if stamp.done is not None)
    return replace(run, commands=changed(run.commands, len(run.commands) - 1, done=done - 1))


@each(ALWAYS | MEMORY | {"the order of ends": (swapped, ", before command ")})
def test_of_mixes(session, change, complaint):
    batch = next(random_mixes(SEED, session.params.tmau, 40))
    assert complains(MixedRun(Tampered(session, change)).run(batch), complaint)
    assert MixedRun(session).run(batch) == []


def begun(session):
    session.clear(0)
    scoreboard = Scoreboard(session)
    scoreboard.begin()
    return scoreboard


@each(
    ALWAYS
    | MEMORY
    | register("the error record", 0)
    | register("the error record", 1)
    | register("the error record", 2)
    | register("error_count", 3)
    | register("irq_status.error", 4)
    | {"the interrupt": (lambda run: replace(run, irq=not run.irq), "irq is ")}
)
@pytest.mark.parametrize("kind", ["load", "store", "copy GG"])
def test_of_single_commands(session, kind, change, complaint):
    scoreboard = begun(Tampered(session, None))
    scoreboard.session._change = change
    assert complains(scoreboard.run([scoreboard.command(kind)]).differences, complaint)


def changes_memory(name):
    """A byte that both golden and the hardware change."""

    def change(run):
        return replace(run, **{name: np.zeros_like(getattr(run, name))})

    return change


@each(
    {
        "a read": (lambda run: replace(run, data_requests=1), "the number of requests of data is 1"),
        "a read of the reducer": (lambda run: replace(run, reducer_requests=1), "the number of requests of data is 1"),
        "a write": (lambda run: replace(run, write_requests=1), "the number of requests of data is 1"),
        "a phase": (lambda run: replace(run, flips=[(9, 0)]), "the list of phases that completed"),
        "shared memory": (changes_memory("shared"), "a change of shared memory"),
        "global memory": (changes_memory("memory"), "a change of global memory"),
    }
)
def test_of_refusals(session, change, complaint):
    scoreboard = begun(Tampered(session, None))
    command = scoreboard.command("copy GG", size=8)
    scoreboard.session._change = change
    assert complains(refusal_differences(scoreboard, Error.BLOCK_ALIGNMENT, command), complaint)


def test_a_good_command_that_is_refused_is_told(session):
    """Of the few behind a refused one."""
    scoreboard = begun(session)
    assert scoreboard.works() == []
    wrong = scoreboard.command("copy GG")
    assert "the list of golden's codes is []" in refusal_differences(scoreboard, Error.BLOCK_ALIGNMENT, wrong)[0]
