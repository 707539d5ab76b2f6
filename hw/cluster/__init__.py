"""Clusters: several cores and one global memory."""
