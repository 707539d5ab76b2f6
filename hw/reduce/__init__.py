"""Reductions: the arithmetic of a lane of 16 bytes, and read, modify, write in global memory."""
