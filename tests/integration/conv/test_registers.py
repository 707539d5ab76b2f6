"""Registers and interrupt of the convolution engine in the whole: error record, status bits, counters.

Specification: docs/conv.md, "Records and registers".
"""

import pytest

from support.sessions import session_fixture
from tilewright.golden import job_word
from tilewright.spec.conv import CONV_REGISTERS, JOB, ConvError

FORMATS = {register.name: register.format for register in CONV_REGISTERS}
COUNTERS = [register.name for register in CONV_REGISTERS if register.offset >= 0x40]
CLEAR = [("control", FORMATS["control"].pack(clear_counters=1, clear_error=1)), ("irq_status", 3), ("irq_enable", 0)]
#: A convolution of four points by 16 bytes of one channel.
SMALL = {
    "operation": "convolution", "type": "u8u8", "output": "raw", "x": 1024, "k": 2048, "y": 3072, "channels": 16,
    "width": 4, "out_channels": 1, "out_width": 4, "granularity": 4, "x_pitch": (16, 64, 64), "k_pitch": 16,
    "y_pitch": (4, 16, 16),
}  # fmt: skip
#: Far more work than any other of these jobs.
LARGE = SMALL | {"width": 256, "out_width": 256, "x": 0, "k": 12288, "y": 8192, "x_pitch": (16, 4096, 4096),
                 "y_pitch": (4, 1024, 1024)}  # fmt: skip


whole_session = session_fixture("unit", engines=["conv"], patience=100_000)


@pytest.fixture
def session(whole_session):
    whole_session.configure(issue_stall=0.0, seed=1)
    whole_session.run(registers=CLEAR)
    return whole_session


def job(tag=0, base=SMALL, **changes):
    return job_word(**base | {"tag": tag} | changes)


def unpacked(session, name):
    return FORMATS[name].unpack(session.read_register(name))


def test_the_record_is_of_the_first_error(session):
    run = session.run(
        jobs=[job(1), job(2, channels=17, x_pitch=(3, 64, 64), x=16380), job(3, barrier=4, signal=1), job(4)]
    )
    assert [end[1:] for end in run.jobs] == [
        (ConvError.NONE, 0, 1),
        (ConvError.RANGE, JOB.index("x"), 2),
        (ConvError.ALIGNMENT, JOB.index("barrier"), 3),
        (ConvError.NONE, 0, 4),
    ]
    first = {"code": ConvError.RANGE, "field": JOB.index("x"), "tag": 2}
    assert unpacked(session, "error") == first
    assert session.read_register("error_count") == 2
    assert unpacked(session, "status") == {"idle": 1, "error": 1, "queue_level": 0}
    session.run(jobs=[0])
    assert (unpacked(session, "error"), session.read_register("error_count")) == (first, 3)
    session.write_register("control", FORMATS["control"].pack(clear_error=1))
    assert session.read_register("error") == session.read_register("error_count") == 0
    assert unpacked(session, "status")["error"] == 0
    session.run(jobs=[job(5, version=0)])
    assert unpacked(session, "error") == {"code": ConvError.VERSION, "field": JOB.index("version"), "tag": 5}
    assert session.read_register("error_count") == 1


def test_a_barrier_that_refuses_is_in_the_record(session):
    session.shared_memory.write(4096, bytes(8))
    run = session.run(jobs=[job(7, signal=1, barrier=4096)])
    assert run.jobs[0][1:] == (ConvError.BARRIER, JOB.index("barrier"), 7)
    assert unpacked(session, "error") == {"code": ConvError.BARRIER, "field": JOB.index("barrier"), "tag": 7}
    assert session.read_register("results_written") == 4


def test_interrupt(session):
    """It is a level of bits that are set and enabled; a bit stays until one is written to it."""
    done, error = FORMATS["irq_status"].pack(done=1), FORMATS["irq_status"].pack(error=1)
    assert not session.run(jobs=[job()]).irq
    assert session.read_register("irq_status") == done
    session.write_register("irq_enable", error)
    assert not session.run().irq
    session.write_register("irq_enable", done)
    assert session.run().irq
    session.write_register("irq_status", error)
    assert session.run().irq, "another bit was cleared"
    session.write_register("irq_status", done)
    assert not session.run().irq
    assert session.read_register("irq_status") == 0
    session.write_register("irq_enable", error)
    assert not session.run(jobs=[job()]).irq
    assert session.run(jobs=[0]).irq
    assert session.read_register("irq_status") == done | error
    session.write_register("irq_status", done | error)
    assert not session.run().irq


def test_counters(session):
    """Each counts, is cleared, and then counts again from 0."""
    assert all(session.read_register(name) == 0 for name in COUNTERS)
    session.run(jobs=[job(), job(), 0])
    seen = {name: session.read_register(name) for name in COUNTERS}
    assert (seen["jobs"], seen["results_written"]) == (3, 8)
    assert seen["steps"] == 2 * 2, "two points of two units a cycle"
    assert seen["feature_rows_fetched"] == 2 * 4
    assert seen["weight_rows_fetched"] == 2
    assert seen["steps"] < seen["stall_features"] < seen["busy_cycles"]
    session.write_register("control", FORMATS["control"].pack(clear_counters=1))
    assert all(session.read_register(name) == 0 for name in COUNTERS)
    session.run(jobs=[job()])
    assert session.read_register("jobs") == 1


def test_status_while_jobs_run_and_wait(session):
    """Two jobs are under way, and the queue fills up; it takes no more until one has ended."""
    depth = session.params.conv.conv.queue_depth
    reads = session.run(jobs=[job(base=LARGE)] * (depth + 3), registers=[("status",)] * 200)
    levels = [FORMATS["status"].unpack(answer.data) for answer in reads.registers]
    assert max(level["queue_level"] for level in levels) == depth
    assert not any(level["idle"] for level in levels[20:])
    assert reads.queued[depth + 1] < reads.jobs[0].cycle, "the queue and what has left it"
    assert reads.queued[depth + 2] > reads.jobs[0].cycle
    assert unpacked(session, "status") == {"idle": 1, "error": 0, "queue_level": 0}


def test_the_next_job_is_checked_and_set_up_meanwhile(session):
    """Behind a long job a short one takes less time than by itself; one that is refused ends right after it."""
    alone = session.run(jobs=[job()]).jobs[0].cycle
    run = session.run(jobs=[job(base=LARGE), job()])
    assert run.jobs[1].cycle - run.jobs[0].cycle < alone - 100
    run = session.run(jobs=[job(base=LARGE), 0])
    assert run.jobs[1].cycle - run.jobs[0].cycle < 5
