"""Text of commands, instructions, jobs and programs, and their packed words."""
