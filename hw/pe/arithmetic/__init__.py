"""Arithmetic of the processing engine's threads (docs/pe.md, "Arithmetic")."""
