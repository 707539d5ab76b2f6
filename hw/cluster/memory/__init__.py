"""The memory side of a cluster: the AXI4 ports of all cores become one."""
