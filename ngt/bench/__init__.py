"""Benchmarks: cases, measuring, runs on a CPU and on a GPU, peers, and results as text."""
