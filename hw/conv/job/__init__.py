"""From the word of a job to what the blocks need: checks, and numbers that are multiplied beforehand."""
