"""Dispatch: jobs of all kinds of setup to their walkers and their halves, in order."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.pick import pick
from ..jobs import JobLayout, PixelWalkLayout, WalkLayout
from ..layouts import ErrorLayout, TransferLayout

__all__ = ["Dispatch"]


class Dispatch(wiring.Component):
    """Splits every job into its transfer, for one of the halves, and its walk, for one of the walkers.

    Combinational, one job a cycle. Both parts leave independently, but the walk no earlier than the transfer. As runs
    of both walkers meet in one stream, a walk waits while the other walker is walking.

    Members
    -------
    jobs : In(array of 2 stream of JobLayout)
    refused : In(array of 3 stream of ErrorLayout)
        Of three rooms, of which one at a time has something to offer.
    walks : Out(stream of WalkLayout)
    pixel_walks : Out(stream of PixelWalkLayout)
    tile_busy, pixel_busy : In(1)
        The walker is walking; from the cycle after it took a walk until it has handed out the last run.
    load_transfers, store_transfers : Out(stream of TransferLayout)
    finished : Out(stream of ErrorLayout)
        Commands that ended in a room.
    store_stb : Out(1)
        Strobe: a job goes to the store half.
    load_completed, store_completed : In(1)
        Strobe: a half has completed a job that is not quiet.
    moving : Out(range(16 + 2 * (params.commands_in_flight + params.max_outstanding)))
        Jobs that are not quiet, in the halves.
    """

    def __init__(self, params):
        self.params = params
        # A part of the job at hand that has been taken is not offered again.
        self.transfer_sent = Signal()
        self.walk_sent = Signal()
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))).array(2),
                "refused": In(stream.Signature(ErrorLayout())).array(3),
                "walks": Out(stream.Signature(WalkLayout(params))),
                "pixel_walks": Out(stream.Signature(PixelWalkLayout(params))),
                "tile_busy": In(1),
                "pixel_busy": In(1),
                "load_transfers": Out(stream.Signature(TransferLayout(params))),
                "store_transfers": Out(stream.Signature(TransferLayout(params))),
                "finished": Out(stream.Signature(ErrorLayout())),
                "store_stb": Out(1),
                "load_completed": In(1),
                "store_completed": In(1),
                "moving": Out(range(16 + 2 * (params.commands_in_flight + params.max_outstanding))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pick(m, self.refused, self.finished.p, self.finished.valid, self.finished.ready)
        job, valid, ready = Signal(JobLayout(self.params)), Signal(), Signal()
        pick(m, self.jobs, job, valid, ready)

        transfer_sent, walk_sent = self.transfer_sent, self.walk_sent
        transfer_taken, walk_taken = Signal(), Signal()
        walkable = Signal()  # the transfer has left, or leaves now
        loads, stores, tiles, pixels = self.load_transfers, self.store_transfers, self.walks, self.pixel_walks
        m.d.comb += [
            loads.p.eq(job.transfer),
            stores.p.eq(job.transfer),
            tiles.p.eq(job.walk),
            pixels.p.eq(job.pixels),
            loads.valid.eq(valid & ~job.store & ~transfer_sent),
            stores.valid.eq(valid & job.store & ~transfer_sent),
            transfer_taken.eq(Mux(job.store, stores.ready, loads.ready) & ~transfer_sent),
            walkable.eq(valid & (transfer_sent | transfer_taken) & ~walk_sent),
            tiles.valid.eq(walkable & ~job.im2col & ~self.pixel_busy),
            pixels.valid.eq(walkable & job.im2col & ~self.tile_busy),
            walk_taken.eq((tiles.valid & tiles.ready) | (pixels.valid & pixels.ready)),
            ready.eq((transfer_sent | transfer_taken) & (walk_sent | walk_taken)),
            self.store_stb.eq(stores.valid & stores.ready),
        ]
        with m.If(valid):
            m.d.sync += [
                transfer_sent.eq((transfer_sent | transfer_taken) & ~ready),
                walk_sent.eq((walk_sent | walk_taken) & ~ready),
            ]
        started = valid & transfer_taken & ~job.transfer.quiet
        m.d.sync += self.moving.eq(self.moving + started - self.load_completed - self.store_completed)
        return m
