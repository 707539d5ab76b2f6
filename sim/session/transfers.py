"""Calls that move one thing, with the names and the checks of the golden model's."""

from tilewright.golden.spec import Space
from tilewright.golden.tmau.block import block_command, prefetch_block_command, refuse_block
from tilewright.golden.tmau.calls import load_command, prefetch_command, refuse_tensor, store_command
from tilewright.golden.tmau.tile import extent

__all__ = ["Transfers"]


class Transfers:
    """Part of a session with a TMAU: ``load``, ``store`` and the others of the golden model, on the hardware.

    Each takes the arguments of the golden function of its name, less ``gmem`` and ``smem``, which the session has, and
    then options of ``run``. It refuses what that refuses, before anything is issued, with the same sentence; returns
    what ``run`` returns. For a command that the hardware shall refuse, see ``command``.
    """

    def load(self, tmap, coords, address=0, offsets=(0, 0, 0), **options):
        """Loads one box or the pixels of a convolution; ``shared`` of the result is all of shared memory."""
        command = load_command(tmap, coords, address, offsets)
        return self._transfer(command, tmap, {"shared": True} | options)

    def store(self, tmap, coords, address=0, reduction="none", fill=False, **options):
        """Stores or reduces one box; ``memory`` of the result is what the tensor spans in global memory.

        The array that the map was made from does not change.
        """
        command = store_command(tmap, coords, address, reduction, fill)
        refuse_tensor(command, tmap, len(self.shared_memory))
        span = self.bind(tmap).address, extent(tmap)
        return self._transfer(command, tmap, ({"memory": span} if self._holds(*span) else {}) | options)

    def prefetch(self, tmap, coords, offsets=(0, 0, 0), **options):
        """Has a load checked and dropped."""
        return self._transfer(prefetch_command(tmap, coords, offsets), tmap, options)

    def copy_block(self, source, destination, size, source_space="global", destination_space="shared",
                   reduction="none", element="u8", **options):  # fmt: skip
        """Copies a block; ``shared`` of the result is all of shared memory, or ``memory`` the destination."""
        command = block_command(source, destination, size, source_space, destination_space, reduction, element)
        refuse_block(command, len(self.shared_memory))
        if command["destination_space"] == Space.SHARED:
            back = {"shared": True}
        else:
            back = {"memory": (destination, size)} if self._holds(destination, size) else {}
        return self.run([command], **back | options)

    def prefetch_block(self, source, size, **options):
        """Has a block in global memory checked and dropped."""
        command = prefetch_block_command(source, size)
        refuse_block(command, len(self.shared_memory))
        return self.run([command], **options)

    def _transfer(self, command, tmap, options):
        refuse_tensor(command, tmap, len(self.shared_memory))
        return self.run([command | {"descriptor": self.descriptor(tmap)}], **options)

    def _holds(self, address, count):
        """Whether global memory has these bytes."""
        first = self.global_memory.base
        return first <= address and address + count <= first + len(self.global_memory)
