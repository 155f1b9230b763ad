"""Measures what mpidata reaches, beside the ceiling of the machine and beside what people use today."""
