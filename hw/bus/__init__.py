"""AXI4 and AXI4-Lite: signatures, ports, bursts and registers."""
