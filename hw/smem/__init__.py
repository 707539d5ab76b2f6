"""The shared memory: banks, their ports, and the barriers in them."""
