"""The second-level cache of a cluster (docs/cluster.md, "L2")."""
