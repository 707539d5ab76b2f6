"""Runs on hardware and golden model side by side, every difference, and the smallest case that shows it."""
