"""The network between the access units of a cluster and the shared memories (docs/cluster.md, "Network")."""
