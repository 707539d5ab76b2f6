"""What a command processor is handed, keeps and shows: program words, errors, registers."""
