"""The command processor: programs in global memory that all engines of a core work for (docs/core.md)."""
