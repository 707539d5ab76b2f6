"""The golden model of a core, and programs of its command processor (docs/core.md)."""
