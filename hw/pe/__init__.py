"""The processing engine: threads that own rows of a product, and a MAC array fed by broadcast (docs/pe.md)."""
