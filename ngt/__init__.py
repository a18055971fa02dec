"""Noise-Guided Transport: imitation learning from random priors.

Where things are, from the bottom up:

- `potential.py`: the method: prior, predictor, pairings, and the scale of the reward
- `reward.py`: the interface that the method and every baseline implement
- `settings/`: what can be set, its default, and how a run's settings are resolved
- `experience/`: envs, rollouts, the replay buffer and demonstrations
- `agent/`: SAC, its networks and policies on disk
- `training/`: Algorithm 1: learner, collector, trainer, checkpoints and jobs
- `runs/`: what a run is called, the files it leaves, and runs as tables
- `bench/`: speed on a CPU and on a GPU
- `commands/`: one module per command of `ngt`; `cli.py` is the entry point
- `seeding.py`, `state.py`, `files.py`, `text.py`, `errors.py`: small tools that all parts use
"""
