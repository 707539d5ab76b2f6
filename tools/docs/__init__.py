"""Tools for those who change the project: area, mutation, documentation, stages."""
