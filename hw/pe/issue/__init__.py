"""Decoding and issue: each instruction leaves in program order, when its registers are free."""
