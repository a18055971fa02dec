"""Benchmarks: what is measured (cases), how (measure), on a CPU, on a GPU, and as text."""
