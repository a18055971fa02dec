"""Noise-Guided Transport: imitation learning from random priors.

The parts of the package:

- `potential.py`: the NGT method, with its prior, predictor, pairings and reward scaling
- `reward.py`: the interface that NGT and every baseline implement
- `settings/`: all settings, their defaults, and how a run's settings are resolved
- `experience/`: envs, rollouts, the replay buffer and demonstrations
- `agent/`: SAC, its networks and policies on disk
- `training/`: Algorithm 1, with learner, collector, trainer, checkpoints and jobs
- `runs/`: the keys, files and tables of runs
- `bench/`: speed measurements on a CPU and on a GPU
- `commands/`: one module per command of `ngt`; `cli.py` is the entry point
- `seeding.py`, `state.py`, `files.py`, `text.py`, `errors.py`: small tools that all parts use
"""
