"""The C library for processors that drive a core: sources, which ``tilewright header --library`` writes."""
