"""Reset in the middle of things: each byte is as before or as after, and the next commands work.

The AXI side is reset together with the unit. The bus monitor has nothing to say before or behind the reset.
"""

import pytest

from support.selection import cases
from support.sessions import session_fixture
from tilewright.hw.bus.axi4 import Response
from tilewright.results import record
from tilewright.sim.harness.records import READ_IDS
from tilewright.sim.session import Session
from tilewright.spec import DESCRIPTOR, Element, Error, LaneLayout, Reduction
from tilewright.verify.compare.scoreboard import Scoreboard

ADDED = {"reduction": Reduction.ADD, "element": Element.U32}
COMMANDS = (
    ("load", {}),
    ("im2col load", {}),
    ("store", {}),
    ("reduce", {}),
    ("copy GG", {}),
    ("copy GS", {}),
    ("copy SG", {}),
    ("copy SS", {}),
    ("copy GG", ADDED),
    ("copy SS", ADDED),
    ("to lanes", {}),
    ("from lanes", {}),
    ("replace", {}),
)


@cases("preset, step", [("unit", 5)], [("unit", 1), ("default", 6)])
def test_reset_in_every_cycle(preset, step):
    """From the first cycle of a command to its last; or in every so many cycles, which are others for each command."""
    resets = 0
    with Session(preset, ["tmau"], latency=4, stall=0.2, patience=100_000) as session:
        scoreboard = Scoreboard(session)
        for kind, changes in COMMANDS:
            scoreboard.begin()
            command = scoreboard.command(kind, **changes)
            life = session.run([command]).cycles
            for cycle in range(1 + resets % step, life, step):
                scoreboard.begin()
                assert scoreboard.interrupt(command, cycle) == 0, f"{kind}, cycle {cycle} of {life}"
                assert scoreboard.works() == [], f"{kind}, cycle {cycle} of {life}"
                resets += 1
    print(f"{preset}: {resets} resets")
    record(f"reset-{preset}", cases=resets, mismatches=0)


RESPONSES = (Response.SLVERR, Response.DECERR)

#: Commands that meet the bus: a kind, and what is different.
BUS_ERRORS_COMMANDS = {
    "load": ("load", {}),
    "im2col load": ("im2col load", {}),
    "store": ("store", {}),
    "im2col store": ("im2col store", {}),
    "reduce": ("reduce", {}),
    "im2col reduce": ("im2col reduce", {}),
    "copy GG": ("copy GG", {}),
    "copy GS": ("copy GS", {}),
    "copy SG": ("copy SG", {}),
    "copy GG, adding": ("copy GG", ADDED),
    "copy GS, adding": ("copy GS", ADDED),
    "copy SG, adding": ("copy SG", ADDED),
    "to lanes": ("to lanes", {}),
    "from lanes": ("from lanes", {}),
    "to lanes, rows": ("to lanes", {"destination_layout": LaneLayout.ROW_ALIGNED}),
    "from lanes, rows": ("from lanes", {"source_layout": LaneLayout.ROW_ALIGNED}),
    "replace": ("replace", {}),
}


def bursts(run, phase):
    """Bursts of a phase of a lone command: address and words of each."""
    trace = run.trace
    if phase == "write":
        addresses, beats = trace.write_request_address, trace.write_request_beats
    else:
        mine = trace.request_id == READ_IDS[phase]
        addresses, beats = trace.request_address[mine], trace.request_beats[mine]
    return list(zip(addresses.tolist(), beats.tolist(), strict=True))


def chosen(run, phase, bus_bytes):
    """First, middle and last word of a phase."""
    words = [first + bus_bytes * beat for first, beats in bursts(run, phase) for beat in range(beats)]
    return [words[0], words[len(words) // 2], words[-1]] if words else []


scoreboard = session_fixture(
    "unit", engines=["tmau"], latency=10, stall=0.2, patience=100_000, long=["default"], prepare=Scoreboard
)


@pytest.fixture(scope="module")
def faults(scoreboard):
    """Every fault: name of the command, phase, and word."""
    found = []
    for name, (kind, changes) in BUS_ERRORS_COMMANDS.items():
        scoreboard.begin()
        result = scoreboard.run([scoreboard.command(kind, **changes)], trace=True)
        assert result.differences == []
        for phase in ("data", "reducer", "write"):
            words = chosen(result.run, phase, scoreboard.params.bus_bytes)
            found += [(name, phase, word) for word in words]
    return found


def begin(scoreboard, phase, word, response):
    """Lets one word fail in a phase."""
    last = word + scoreboard.params.bus_bytes - 1
    scoreboard.begin(faults=(word, last), response=response.value, errors_on="writes" if phase == "write" else "reads")


def test_phases(faults):
    """Every command meets errors where it must."""
    met = {(name, phase) for name, phase, _ in faults}
    reads = {"load", "im2col load", "copy GG", "copy GS", "copy GG, adding", "copy GS, adding", "to lanes",
             "to lanes, rows"}  # fmt: skip
    reduces = {"reduce", "im2col reduce", "copy GG, adding", "copy SG, adding", "replace"}
    writes = reduces | {"store", "im2col store", "copy GG", "copy SG", "from lanes", "from lanes, rows"}
    assert met == {
        (name, phase) for phase, names in (("data", reads), ("reducer", reduces), ("write", writes)) for name in names
    }


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: response.name)
def test_error_of_a_lone_command(scoreboard, faults, response):
    for name, phase, word in faults:
        kind, changes = BUS_ERRORS_COMMANDS[name]
        begin(scoreboard, phase, word, response)
        result = scoreboard.run([scoreboard.command(kind, **changes)])
        where = f"{name}, {phase} {word:#x}"
        assert result.differences == [], where
        assert [error.code for error in result.errors] == [Error.READ if phase == "data" else Error.WRITE], where
        assert result.run.flips == [], where
        scoreboard.heal()
        assert scoreboard.works() == [], where
    record(f"axi-errors-{response.name.lower()}-{scoreboard.params.bus_bytes}", cases=len(faults), mismatches=0)


def test_error_between_good_commands(scoreboard, faults):
    """Of several commands in flight only the one with the error fails."""
    good = [
        scoreboard.command("copy GS", source=0x3100, destination=0x180),
        scoreboard.command("copy SG", source=0x680, destination=0x3A00),
        scoreboard.command("copy GS", source=0x3100, destination=0xE00),
        scoreboard.command("copy SG", source=0x700, destination=0x3C00),
    ]
    for number, (name, phase, word) in enumerate(faults):
        kind, changes = BUS_ERRORS_COMMANDS[name]
        begin(scoreboard, phase, word, RESPONSES[number % 2])
        commands = [*good[:2], scoreboard.command(kind, **changes), *good[2:]]
        result = scoreboard.run(commands, wait=False)
        assert result.differences == [], f"{name}, {phase} {word:#x}"
        assert [stamp.error == Error.NONE for stamp in result.run.commands] == [True, True, False, True, True]
    record(f"axi-errors-between-{scoreboard.params.bus_bytes}", cases=len(faults), mismatches=0)


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: response.name)
def test_error_in_a_descriptor(scoreboard, response):
    """Whatever beat it comes with; nothing moves, and the descriptor is not kept."""
    bus_bytes = scoreboard.params.bus_bytes
    kinds = ("load", "store", "reduce", "prefetch")
    beats = range(0, DESCRIPTOR.bytes, bus_bytes)
    for kind in kinds:
        command = scoreboard.command(kind)
        for beat in beats:
            word = command["descriptor"] + beat
            scoreboard.begin(faults=(word, word + bus_bytes - 1), response=response.value)
            result = scoreboard.run([command, command])
            assert result.differences == []
            assert [error.code for error in result.errors] == [Error.DESCRIPTOR_READ] * 2
            assert result.run.data_requests + result.run.reducer_requests + result.run.write_requests == 0
            assert result.run.descriptor_beats == 2 * len(beats)
            assert (result.run.shared == scoreboard.shared).all()
            assert (result.run.memory == scoreboard.memory).all()
            scoreboard.heal()
            assert scoreboard.works() == []
    cases = len(kinds) * len(beats)
    record(f"axi-errors-descriptor-{response.name.lower()}-{bus_bytes}", cases=cases, mismatches=0)


@pytest.mark.parametrize("name", ["load", "store", "copy GG", "copy GS", "copy SG"])
def test_all_words_fail(scoreboard, name):
    """From the first word on, reads and writes alike; the first is recorded."""
    kind, changes = BUS_ERRORS_COMMANDS[name]
    scoreboard.begin(faults=(0x1000, 0x3FFF), response=Response.DECERR.value)
    result = scoreboard.run([scoreboard.command(kind, **changes)])
    assert result.differences == []
    assert len(result.errors) == 1
    scoreboard.heal()
    assert scoreboard.works() == []


def test_several_failing_commands(scoreboard):
    """Each has its own record; the first one stays."""
    scoreboard.begin(faults=(0x1000, 0x3FFF), response=Response.SLVERR.value)
    names = [name for name in BUS_ERRORS_COMMANDS if name not in ("load", "im2col load", "copy GG", "copy GG, adding")]
    kinds = [BUS_ERRORS_COMMANDS[name] for name in names]
    result = scoreboard.run([scoreboard.command(kind, **changes) for kind, changes in kinds])
    assert result.differences == []
    assert len(result.errors) == len(names)
