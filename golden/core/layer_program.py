"""A layer on the convolution engine as a program of the command processor, all of it in shared memory at once."""

import numpy as np

from ..arguments import instance, integer
from ..conv.layer import ConvLayer
from ..spec import CHUNK_BYTES
from ..spec.conv.job import JOB
from ..tmau.machine import command_word
from .words import conv_words, program_bytes, program_word, tmau_word

__all__ = ["LayerProgram"]


class LayerProgram:
    """A :class:`ConvLayer` with the global memory that its program needs.

    Tensors lie in global memory where they lie in shared memory: one block copy brings all that the job reads, and one
    takes its results back, where :meth:`ConvLayer.result` finds them.

    Parameters
    ----------
    layer : ConvLayer
    smem_bytes : int
        Bytes of shared memory; ValueError if the layer takes more.

    Attributes
    ----------
    memory : uint8 array
        Global memory from address 0 on.
    words : list of int
        The program, packed.
    address : int
        Where it lies in ``memory``.
    """

    def __init__(self, layer, smem_bytes=128 * 1024):
        instance("layer", layer, ConvLayer)
        if len(layer.smem) > integer("smem_bytes", smem_bytes):
            raise ValueError(f"smem_bytes must be {len(layer.smem)} or more for this layer, not {smem_bytes}")
        y = JOB.unpack(layer.word)["y"]
        written = -(-layer.shape.bytes_written // CHUNK_BYTES) * CHUNK_BYTES
        self.words = [
            program_word("wait_all"),
            _copy("global", "shared", 0, y),
            program_word("wait_all"),
            *conv_words(layer.word),
            program_word("wait_all"),
            _copy("shared", "global", y, written),
            program_word("end", interrupt=1),
        ]
        self.address = len(layer.smem)
        self.memory = np.concatenate([layer.smem, program_bytes(self.words)])


def _copy(source, destination, address, size):
    """The word of a copy from one memory to the same addresses of the other."""
    spaces = {"source_space": source, "destination_space": destination}
    return tmau_word(command_word("copy_block", source=address, destination=address, size=size, **spaces))
