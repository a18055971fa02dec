"""Benchmarks on CPUs and GPUs: timed functions, measurements, other libraries, and output."""
