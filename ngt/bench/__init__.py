"""Benchmarks on a CPU and a GPU: their cases, measurements, peers, and results as text."""
