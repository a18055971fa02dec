"""Views of runs and policies: curves in the terminal, TensorBoard files and videos."""
