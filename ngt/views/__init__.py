"""What people look at: the curves of runs in training, TensorBoard files and videos of policies."""
