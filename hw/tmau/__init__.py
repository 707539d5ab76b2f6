"""The tensor memory access unit."""

__all__ = []
