"""The command line ``tilewright``: the commands, and what they share."""
