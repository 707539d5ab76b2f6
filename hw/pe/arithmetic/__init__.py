"""Arithmetic of the threads: functions of registers, one instruction a cycle for all threads (docs/pe.md)."""
