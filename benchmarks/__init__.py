"""Measures the speed of mpidata, and compares it with the machine's limits and with other tools."""
