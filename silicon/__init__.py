"""Replay on a Hopper GPU: the GPU's tensor mover runs the same cases as the golden model."""
