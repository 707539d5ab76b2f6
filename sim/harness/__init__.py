"""Hardware around a design in simulation: memories, drivers, monitors, logs."""
