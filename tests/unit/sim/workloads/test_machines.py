"""Which simulators a run of workloads starts, with sessions that only say that they were started."""

from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import Setting, changed
from tilewright.sim.workloads import WORKLOADS, machines
from tilewright.sim.workloads.machines import Machines


class Stub:
    """Notes what it was made of, and that it was closed."""

    def __init__(self, preset=None, **options):
        self.preset, self.options, self.closed = preset, options, False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.closed = True


@pytest.fixture(autouse=True)
def stubs(monkeypatch):
    monkeypatch.setattr(machines, "Session", Stub)
    monkeypatch.setattr(machines, "ClusterSession", Stub)


def test_workloads_of_one_machine_share_a_session():
    with Machines("default", "verilator") as opened:
        sessions = {name: opened.session(name) for name in WORKLOADS}
    assert sessions["photo"] is sessions["roundtrip"]
    assert sessions["dct"] is sessions["gemm"]
    assert len(set(sessions.values())) == 6
    assert all(session.closed for session in sessions.values())


@pytest.mark.parametrize(("small", "threads"), [(False, 64), (True, 16)])
def test_threads_are_those_of_the_seed_unless_simulation_is_slow(small, threads):
    with Machines("default", "icarus", small) as opened:
        assert opened.session("threads").options["params"].pe == PE_PRESETS["default"].replace(threads=threads)
        assert opened.session("gemm").options["params"].pe == PE_PRESETS["default"]


def test_each_machine_has_its_waveform():
    paths = {"tmau": Path("one"), "pe": Path("two"), "conv": Path("three"), "accelerator": Path("four")}
    with Machines("unit", "verilator", True, paths) as opened:
        waves = [opened.session(name).options["waves"] for name in ("photo", "threads", "stem", "network")]
    assert waves == list(paths.values())


def test_parameters_that_differ_reach_every_machine():
    settings = [Setting("smem", "size_bytes", 65536), Setting("pe", "threads", 8), Setting("tmau", "max_burst", 4)]
    with Machines("default", "verilator", settings=settings) as opened:
        options = {name: opened.session(name).options for name in WORKLOADS}
    assert options["photo"]["params"].tmau == changed(TMAU_PRESETS["default"], settings)
    assert options["stem"]["params"].smem.size_bytes == 65536
    # A workload's own number of threads does not count then.
    assert options["threads"]["params"].pe == changed(PE_PRESETS["default"], settings)
    assert options["cluster"]["params"].core.pe.threads == 8
    assert options["network"]["params"] == changed(core_params("default", ENGINES), settings)
    with Machines("default", "verilator", settings=[Setting("l2", "ways", 4)]) as opened:
        opened.session("photo")
        with pytest.raises(UsageError, match=r"^--set l2\.ways=4: what is built has no l2, only tmau, "):
            opened.prepare(["photo", "gemm", "stem", "network"], None)
