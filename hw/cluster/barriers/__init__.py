"""Barrier operations between the cores of a cluster (docs/cluster.md, "Remote arrival")."""
