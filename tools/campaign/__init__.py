"""Campaigns: random cases on golden and on the RTL, as many as the time allows, by Dask."""
