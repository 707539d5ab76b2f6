"""What a parameter costs and brings: spaces of points, measured on the RTL by Dask, as tables and pictures."""
