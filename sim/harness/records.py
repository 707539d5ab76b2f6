"""What the scripts and logs of a harness hold, and how much, for a core and for a cluster."""

from dataclasses import dataclass, field

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.utils import ceil_log2

from tilewright.hw.bus.axi4_lite import AccessLayout
from tilewright.hw.conv.layouts import ConvEndLayout
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.pe.layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from tilewright.hw.smem.layouts import BarrierResultLayout, ReadLayout, read_data_layout
from tilewright.spec.conv import JOB

from .drivers import BarrierItemLayout, RegisterAnswerLayout

__all__ = ["PE_SCRIPT_DEPTH", "READ_IDS", "TMAU_SCRIPT_DEPTH", "TRACES", "Records", "cluster_records", "core_records"]

#: Items of each script of a core: with a convolution engine alone, with an access unit, and with a processing engine.
CONV_SCRIPT_DEPTH, TMAU_SCRIPT_DEPTH, PE_SCRIPT_DEPTH = 1 << 10, 1 << 12, 1 << 14
#: Entries of the logs of the bus: AR, R, AW and W.
TRACES = {"requests": 1 << 14, "beats": 1 << 16, "write_requests": 1 << 14, "write_beats": 1 << 16}
#: Entries of the logs of the work of a program: a network of 25 million weights has some 25,000 words.
_PROGRAM_DEPTHS = {"words": 1 << 17, "commands": 1 << 17, "flips": 1 << 17, "jobs": 1 << 15}
#: IDs of reads on the bus, by their purpose.
READ_IDS = {"data": 0, "descriptor": 1, "reducer": 2}


@dataclass(frozen=True)
class Records:
    """Scripts and logs of a harness.

    Attributes
    ----------
    items : dict of str to shape
        An item of the script of each port, in the order of the bits of ``…_after``.
    entries : dict of str to shape
        An entry of each log, without its cycle. Every port has a log of its own name, which has an entry for each item
        that is complete; the others hold what else happens.
    depth : int
        Items of each script, and entries of each log that is neither among :data:`TRACES` nor in ``depths``.
    depths : dict of str to int
        Entries of further logs.
    """

    items: dict
    entries: dict
    depth: int
    depths: dict = field(default_factory=dict)

    @property
    def others(self):
        """Logs that belong to no port."""
        return [name for name in self.entries if name not in self.items]

    def log_depth(self, name):
        """Entries of a log."""
        return (TRACES | self.depths).get(name, self.depth)


def _bus_entries(params, id_width=2):
    request = data.StructLayout({"id": id_width, "length": 8, "address": params.addr_width})
    return {
        "requests": request,
        "beats": data.StructLayout({"id": id_width, "last": 1}),
        "write_requests": request,
        "write_beats": unsigned(1),  # last
    }


def core_records(params):
    """The :class:`Records` of a ``Core``; CoreParams.

    A command or a job is complete when it has ended, an instruction when it has reported.
    """
    smem, items, entries, depths, depth = params.smem, {}, {}, {}, CONV_SCRIPT_DEPTH
    if params.tmau:
        depth = TMAU_SCRIPT_DEPTH
        items["commands"] = command_layout()
        entries |= {
            "commands": data.StructLayout({"tag": 16, "error": 8}),
            "accepted": unsigned(16),  # tag
            **_bus_entries(params.tmau),
        }
    if not (params.pe or params.conv):
        items["reads"], entries["reads"] = ReadLayout(smem), read_data_layout()
    if params.pe:
        depth = PE_SCRIPT_DEPTH
        tables = {"segments": SegmentWriteLayout(params.pe), "pages": PageWriteLayout(params.pe)}
        items |= {"instructions": unsigned(INSTRUCTION_BITS)} | tables
        entries |= {"instructions": FaultLayout(params.pe), "inside": FaultLayout(params.pe)}
        entries |= dict.fromkeys((*tables, "issued", "halts"), unsigned(1))
    items |= {"barriers": BarrierItemLayout(smem), "registers": AccessLayout()}
    entries |= {
        "barriers": BarrierResultLayout(),
        "registers": RegisterAnswerLayout(),
        "flips": unsigned(smem.addr_width),  # barrier
    }
    if params.conv:
        items["jobs"] = unsigned(JOB.bits)
        entries |= {"jobs": ConvEndLayout(), "queued": unsigned(1)}
    if params.program:
        entries["words"], depths = data.StructLayout({"kind": 4, "index": 32}), _PROGRAM_DEPTHS
    return Records(items, entries, depth, depths)


def cluster_records(params):
    """The :class:`Records` of a ``Cluster``: those of each core, with its number after the name, and of the bus; with
    a second-level cache ``cache``, accesses to its registers.
    """
    core = core_records(params.core)
    bus = _bus_entries(params.tmau, 2 + ceil_log2(params.cores))
    items, entries, depths = {}, {}, {}
    barriers = {"barriers": BarrierItemLayout(params.smem, params.cores)}
    for number in range(params.cores):
        items |= {f"{name}{number}": shape for name, shape in (core.items | barriers).items() if name != "reads"}
        entries |= {f"{name}{number}": shape for name, shape in core.entries.items() if name not in ("reads", *bus)}
        depths |= {f"{name}{number}": depth for name, depth in core.depths.items()}
    if params.l2:
        items["cache"], entries["cache"] = AccessLayout(), RegisterAnswerLayout()
    return Records(items, entries | bus, core.depth, depths)
