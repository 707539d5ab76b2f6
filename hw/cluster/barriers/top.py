"""The barrier ports of the cores of a cluster; connections only (docs/cluster.md, "Remote arrival")."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.join import join
from ...smem.layouts import AcceptanceLayout, BarrierRequestLayout, BarrierResultLayout
from ...smem.signatures import BarrierEventSignature
from .caller import RemoteCaller
from .gate import BarrierGate
from .layouts import ArrivalAnswerLayout

__all__ = ["BarrierNetwork"]


class BarrierNetwork(wiring.Component):
    """Stands in front of the barrier port of each core: operations go there, and arrivals to other cores.

    Parameters
    ----------
    params : SmemParams
    cores : int
        2 to 16.

    Members
    -------
    requests : In(array of cores stream of BarrierRequestLayout(params, cores))
        Of the processors of each core.
    results : Out(array of cores stream of BarrierResultLayout())
        One for each, in order.
    barriers : Out(array of cores stream of BarrierRequestLayout(params))
        To each core.
    barrier_results : In(array of cores stream of BarrierResultLayout())
    reach : In(array of cores cores)
        Of each core: whom it may name.
    acceptance : In(array of cores AcceptanceLayout(params, cores))
    refused : Out(array of cores BarrierEventSignature(params))
        For the error record of each core; stays until it is recorded.
    recorded : In(array of cores 1)
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        super().__init__(
            {
                "requests": In(stream.Signature(BarrierRequestLayout(params, cores))).array(cores),
                "results": Out(stream.Signature(BarrierResultLayout())).array(cores),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))).array(cores),
                "barrier_results": In(stream.Signature(BarrierResultLayout())).array(cores),
                "reach": In(cores).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)).array(cores),
                "refused": Out(BarrierEventSignature(params)).array(cores),
                "recorded": In(1).array(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        callers = [RemoteCaller(self._params, self._cores, number) for number in range(self._cores)]
        gates = [BarrierGate(self._params, self._cores) for _ in range(self._cores)]
        for number, (caller, gate) in enumerate(zip(callers, gates, strict=True)):
            m.submodules[f"caller{number}"], m.submodules[f"gate{number}"] = caller, gate
            join(m, requests=flipped(self.requests[number]), caller=caller.requests)
            join(m, caller=caller.results, results=flipped(self.results[number]))
            join(m, caller=caller.barriers, gate=gate.own)
            join(m, gate=gate.own_results, caller=caller.barrier_results)
            join(m, gate=gate.barriers, barriers=flipped(self.barriers[number]))
            join(m, barrier_results=flipped(self.barrier_results[number]), gate=gate.results)
            join(m, caller=caller.refused, refused=flipped(self.refused[number]))
            for owner, port in enumerate(caller.calls):
                join(m, caller=port, gate=gates[owner].calls[number])
            m.d.comb += [
                caller.reach.eq(self.reach[number]),
                caller.recorded.eq(self.recorded[number]),
                gate.acceptance.eq(self.acceptance[number]),
                *(
                    caller.answer[name].eq(_any(other.answers[number][name] for other in gates))
                    for name, _ in ArrivalAnswerLayout()
                ),
            ]
        return m


def _any(values):
    """A core has one call at a time, so one answer."""
    found = 0
    for value in values:
        found |= value
    return found
