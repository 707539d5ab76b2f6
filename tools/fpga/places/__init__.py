"""Places of block memories and multipliers, found beforehand and given to nextpnr."""
