"""The workloads on crops of the photographs, the comparison they rest on, and the report."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.errors import UsageError
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams, core_params
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.report.charts import SWIZZLE_LAYOUTS, bank_map
from tilewright.sim.report.page import report_page
from tilewright.sim.report.timeline import Transfer, record_transfer
from tilewright.sim.workloads import WORKLOADS, names_on
from tilewright.sim.workloads.findings import Findings, Totals
from tilewright.sim.workloads.machines import Machines
from tilewright.sim.workloads.mover import Box, Mover
from tilewright.sim.workloads.multiplier import Multiplier
from tilewright.sim.workloads.photographs import load_photographs
from tilewright.spec import BANKS, Swizzle
from tilewright.tools.cli.main import main
from tilewright.tools.cli.sim import Played, play, table_rows

PRESET = "unit"


session = session_fixture(PRESET, engines=["tmau"])


engine = session_fixture(PRESET, engines=["pe"])


convolution_engine = session_fixture(PRESET, engines=["conv"])


@pytest.fixture(scope="module")
def photographs():
    return load_photographs((24, 64))


@pytest.mark.parametrize("name", names_on("tmau"))
def test_every_byte_equals_golden(session, photographs, name):
    played = play(name, session, photographs)
    assert played.totals.problems == []
    assert played.totals.work > 0
    assert 0 < played.totals.utilisation <= 1
    assert played.speed > 0


@pytest.mark.parametrize("name", names_on("pe"))
def test_every_product_equals_golden(engine, photographs, name):
    played = play(name, engine, photographs, small=True)
    assert played.totals.problems == []
    assert 0 < played.totals.utilisation <= 1
    cases = played.findings.cases.values()
    assert sum(totals.work for totals in cases) == played.totals.work > 0
    assert all(0 < totals.utilisation <= 1 for totals in cases)


@pytest.mark.parametrize("name", names_on("conv"))
def test_every_result_equals_golden(convolution_engine, photographs, name):
    played = play(name, convolution_engine, photographs, small=True)
    assert played.totals.problems == []
    cases = played.findings.cases
    assert sum(totals.work for totals in cases.values()) == played.totals.work > 0
    assert all(0 < totals.utilisation <= 1 for totals in cases.values())
    assert all(pixels.std() > 0 for pixels in played.findings.pictures.values())


@pytest.mark.long
@pytest.mark.parametrize("name", names_on("cluster"))
def test_every_byte_of_every_core_equals_golden(photographs, name):
    with Machines(PRESET, "verilator") as machines:
        played = play(name, machines.session(name), photographs, small=True)
    assert played.totals.problems == []
    assert 0 < played.totals.utilisation <= 1
    (sheet,) = played.findings.pictures.values()
    assert sheet.shape == (3 * 24, 3 * 64, 3) and sheet.std() > 0
    (chart,) = played.findings.charts.values()
    # All engines of all cores have worked.
    assert len(re.findall(r">core \d, (in|out|engine)<", chart)) == 3 * 4
    assert all(float(share) > 0 for share in re.findall(r">([\d.]+)%<", chart))


def test_halves_of_k_are_added(engine):
    multiplier = Multiplier(engine)
    numbers = np.random.default_rng(5)
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((4, 1100), (1100, 4)))
    multiplier.product(a, b)
    assert multiplier.totals.parts == 2
    assert multiplier.totals.problems == []


def test_threads_that_share_a_product_are_faster(engine, photographs):
    cases = play("threads", engine, photographs, small=True).findings.cases
    # With few threads the next issue waits for the products of the one before; kb leaves fewer issues.
    assert cases["kb4"].cycles < cases["kb2"].cycles < cases["ka1"].cycles


def test_photograph_is_put_together_from_shared_memory(session, photographs):
    (seen,) = play("photo", session, photographs).findings.pictures.values()
    assert (seen == photographs[0]).all()


def test_column_takes_one_cycle_with_swizzle(session, photographs):
    facts = play("swizzle", session, photographs).findings.facts
    measured = [float(re.search(r": ([\d.]+) cycles a column", fact)[1]) for fact in facts]
    # Rows of 128, 64 and 32 bytes: 1, 2 and 4 of them share a line, and with it the eight banks.
    assert measured == pytest.approx([8, 1, 4, 1, 2, 1], abs=0.01)


def test_changed_byte_in_global_memory_is_found(session):
    mover = Mover(session)
    tmap = mover.tiled(np.zeros((8, 16), np.uint8), box=(16, 8))
    session.global_memory.write(tmap.address + 37, bytes([1]))
    list(mover.move([Box(tmap, (0, 0))]))
    assert mover.totals.problems == ["shared memory after 0 boxes: 1 of 4096 values differ"]
    assert mover.totals.verdict == "1 PROBLEMS"


def test_different_shapes_are_a_problem():
    totals = Totals()
    totals.require([1, 2], [1, 2, 3], "answers")
    assert totals.problems == ["answers: there are (2,) values, not (3,)"]


def test_reads_begin_after_the_barrier(session):
    mover = Mover(session)
    tmap = mover.tiled(np.arange(2048, dtype=np.uint8).reshape(16, 128), box=(128, 16))

    def reads(box, address):
        return [[address + 16 * lane for lane in range(BANKS)]]

    (batch,) = mover.move([Box(tmap, (0, 0))], reads)
    assert batch.run.read_cycles[0] > batch.run.flips[0][0]
    assert batch.run.reads.reshape(-1).tolist() == list(range(128))


def test_box_that_does_not_fit_is_refused():
    params = TMAU_PRESETS["unit"].replace(smem=SmemParams(1024))
    stub = SimpleNamespace(
        params=CoreParams(params), memory_bytes=1 << 16, clear=lambda: None, place=lambda contents: 0
    )
    mover = Mover(stub)
    tmap = mover.tiled(np.zeros((16, 128), np.uint8), box=(128, 8))
    with pytest.raises(UsageError, match=r"^a box of 1024 bytes and a barrier do not fit in 1024 of shared memory$"):
        next(mover.move([Box(tmap, (0, 0))]))


@pytest.mark.parametrize("option", ["--workload", "--preset", "--sim"])
def test_unknown_name_is_one_sentence(option, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sim", option, "nothing"])
    assert stop.value.code == 2
    assert re.fullmatch(rf"tilewright sim: argument {option}: invalid choice: 'nothing' .*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "names"),
    [([], ["photo", "convolution", "gemm"]), (["--workload", "all"], list(WORKLOADS)),
     (["--workload", "dct"], ["dct"])],
)  # fmt: skip
def test_short_suite_is_the_default(monkeypatch, capsys, options, names):
    class Asked:
        def __init__(self, *args):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def prepare(self, asked, display):
            assert asked == names
            raise UsageError("that is all")

    monkeypatch.setattr("tilewright.sim.workloads.machines.Machines", Asked)
    assert main(["sim", "--preset", "unit", *options]) == 2
    assert capsys.readouterr().err == "tilewright sim: that is all\n"


def test_timeline_is_in_order(session):
    transfer = record_transfer(session)
    first = [cycles[0] for cycles in transfer.events.values()]
    assert first == sorted(first)
    # 9 of 10 rows lie inside, each in 144 adjoining bytes: 9 words of 16 bytes.
    assert len(transfer.events["data words (R)"]) == 9 * 9


def test_report_stands_alone_and_is_the_same_each_time():
    moved = Totals(parts=2, work=300, cycles=20, limit=15, steady_cycles=10, steady_limit=10, problems=["<odd>"])
    multiplied = Totals("MACs", parts=1, work=1024, cycles=40, limit=8)
    pictures = {"A picture": np.zeros((4, 4, 3), np.uint8)}
    played = [
        Played("photo", moved, Findings(("a fact",), pictures), 1000.0),
        Played("gemm", multiplied, Findings(cases={"bf16": multiplied}), 1000.0),
    ]
    transfer = Transfer("One box", {"command accepted": [0], "barrier flips": [30], "nothing": []})
    pe = core_params("unit", ["pe"])
    machines = [core_params("unit", ["tmau"]), pe, pe, ClusterParams(3, core_params("unit", ["tmau", "pe", "program"]))]
    page, again = (report_page("unit on icarus", machines, played, transfer) for _ in range(2))
    assert page == again
    assert "75.0%" in page and "a fact" in page and "data:image/png" in page and "&lt;odd&gt;" in page
    assert "1,024 MACs" in page and "gemm bf16" in page and "40: 20.0% of the limit" in page
    assert page.count("A core with a processing engine (4 threads of 8 multipliers of 8 bits), ") == 1
    assert "3 cores on one bus, each with an access unit (bus of 16 bytes, 4 reads in flight), a processing" in page
    assert "One transfer" not in report_page("unit on icarus", machines[1:], played[1:], None)
    assert page.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0


def test_table_row_shows_limit_and_verdict():
    totals = Totals(parts=1, work=128, cycles=40, limit=10)
    (row,) = table_rows(Played("photo", totals, Findings(), 12345.6))
    assert row.split() == ["photo", "1", "128", "bytes", "40", "10", "25.0%", "–", "equal", "12,346"]


def test_cases_have_rows_of_their_own():
    totals = Totals("MACs", parts=1, work=128, cycles=40, limit=10, problems=["one"])
    rows = table_rows(Played("gemm", totals, Findings(cases={"f16": totals}), 1.0))
    assert [row.split()[0] for row in rows] == ["gemm", "f16"]
    assert rows[1].split()[1:] == ["1", "128", "MACs", "40", "10", "25.0%", "–", "1", "PROBLEMS"]


def test_bank_maps_show_every_layout():
    text = bank_map([(2 * channels, mode) for channels, mode in SWIZZLE_LAYOUTS])
    cycles = re.findall(r">(\d) cycles? a column<", text)
    assert cycles == ["8", "1", "4", "1", "2", "1"]


def test_picture_in_the_documentation_is_current():
    picture = Path("docs/banks.svg").read_text(encoding="utf-8")
    assert picture == bank_map([(128, Swizzle.NONE), (128, Swizzle.B128)])
