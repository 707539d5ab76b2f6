"""Machinery to run things: builders, runners, models, workloads, reports."""
