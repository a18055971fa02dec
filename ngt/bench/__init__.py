"""Benchmarks on a CPU and a GPU: cases, measurements, other libraries, and results as text."""
