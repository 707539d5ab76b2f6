"""Data path and registers together: what is counted is what happened."""

from tilewright.golden.spec.conv.job import ConvOperation
from tilewright.golden.spec.conv.registers import CONV_REGISTERS
from tilewright.sim.random.conv_jobs import random_jobs
from tilewright.sim.session import ConvSession


def test_counters_of_one_convolution():
    with ConvSession("unit") as session:
        conv = session.params.conv
        jobs = random_jobs(11, conv, 60, most_macs=2000)
        job = next(each for each in jobs if each.fields["operation"] == ConvOperation.CONVOLUTION)
        fields = job.fields
        run = session.run([job.word], shared=job.smem)
        values = session.registers()
        points = fields["batch"] * fields["out_height"] * fields["out_width"]
        assert values["results_written"] == points * fields["out_channels"]
        assert values["jobs"] == len(run.jobs) == 1
        assert 0 < values["steps"] < values["busy_cycles"] <= run.cycles
        # A set has a row for each unit, and is used once for each channel of a slave, at most four.
        assert values["feature_rows_fetched"] % conv.units == 0
        assert values["steps"] <= 4 * values["feature_rows_fetched"] // conv.units
        session.write_register("control", 1)
        counters = [register.name for register in CONV_REGISTERS if register.offset >= 0x40]
        assert not any(session.registers()[name] for name in counters if name != "busy_cycles")
