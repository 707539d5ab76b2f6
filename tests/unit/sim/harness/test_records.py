"""How much the logs of a harness hold."""

from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.sim.harness.records import PE_SCRIPT_DEPTH, TRACES, core_records


def test_a_core_with_a_command_processor_has_deeper_logs():
    """Of what a program hands out, which no script limits."""
    plain = core_records(CORE_PRESETS["unit"])
    core = core_records(CORE_PRESETS["unit"].replace(program=ProgramParams()))
    assert "words" not in plain.entries and plain.depths == {}
    assert {name: core.log_depth(name) for name in ("words", "commands", "flips", "jobs")} == {
        "words": 1 << 17, "commands": 1 << 17, "flips": 1 << 17, "jobs": 1 << 15,
    }  # fmt: skip
    assert core.depth == plain.depth == plain.log_depth("commands") == PE_SCRIPT_DEPTH
    assert all(records.log_depth(name) == depth for records in (plain, core) for name, depth in TRACES.items())
