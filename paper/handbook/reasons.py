"""The purpose of each group of packages, and the reason for each package, in docs/dependencies.md.

A package that brings optional parts is written as in pyproject.toml, such as gymnasium[mujoco].
"""

GROUPS = {
    "core": "everything except the extras: training, the workflow, figures and tables",
    "formats": "`ngt import minari` and `d4rl`, `ngt export`",
    "tensorboard": "`ngt watch --tensorboard`",
    "video": "`ngt video` as mp4, and videos of gymnasium's small tasks such as Pendulum-v1",
    "dev": "tests, linters, types and the docs site",
}

REASONS = {
    # core
    "arch": "rliable needs it; listed only because rliable 1.2 fails with arch 8",
    "dm-control": "the tasks of the DeepMind Control Suite, which no other package has",
    "einops": "names the axes of tensors where runs, batches and outputs are rearranged; `reshape` "
    "and `transpose` do not",
    "filelock": "keeps two processes from training one run; torch needs it anyway. `fcntl` alone "
    "has no time limit for waiting",
    "gymnasium[mujoco]": "the envs of the paper; its predecessor gym is no longer maintained",
    "jinja2": "fills the report's page; torch and snakemake need it anyway",
    "matplotlib": "draws figures as PDF and PNG without a browser, which plotly needs",
    "mujoco": "the physics of gymnasium's and dm-control's tasks; listed only because dm-control "
    "fails with mujoco 4",
    "numpy": "arrays; almost every other package needs it",
    "pandas": "tables of evaluations; rliable needs it anyway, so polars would be one more package",
    "pillow": "writes GIFs and makes pictures smaller; matplotlib needs it anyway",
    "pyarrow": "reads and writes records as Parquet, and reads `imitation`'s trajectories; "
    "fastparquet cannot read these, and `imitation` itself needs an older gymnasium",
    "pyyaml": "reads config files; snakemake needs it anyway",
    "rliable": "the interquartile mean and P(A > B), by the authors who proposed them for RL",
    "safetensors": "stores policies; unlike a pickle, such a file cannot run code when loaded",
    "scipy": "the linear programs and distributions of the theory and the statistics",
    "shimmy[dm-control]": "gives dm-control's tasks the interface of gymnasium; both have the same "
    "maintainers",
    "snakemake": "runs and resumes the experiments, on one machine or with Slurm; Airflow needs a "
    "server",
    "snakemake-executor-plugin-slurm": "lets snakemake submit jobs to Slurm",
    "torch": "nets and gradients; the NGT authors' code uses it as well, so that layers and "
    "initial weights can be compared",
    "tqdm": "the progress bar in a terminal; dm-control needs it anyway",
    # extras
    "h5py": "reads D4RL's files; shimmy needs it anyway",
    "minari": "reads and writes its own datasets, whose layout changes with its versions",
    "tensorboard": "writes and shows event files; tensorboardX only writes them",
    "av": "writes mp4 files with the FFmpeg in its wheel; gymnasium's own recorder needs moviepy, "
    "which starts a separate FFmpeg program",
    "gymnasium[classic-control]": "pygame-ce, with which gymnasium draws its small tasks",
    # dev
    "hypothesis": "makes many inputs for a test and reduces one that fails",
    "mkdocs": "builds the docs site from Markdown; Sphinx expects reStructuredText",
    "mkdocs-material": "the site's theme, with a search that needs no server",
    "mkdocstrings-python": "adds the docstrings of `import ngt` to the site",
    "mypy": "checks types",
    "packaging": "reads requirements as pip does; matplotlib needs it anyway",
    "pytest": "runs the tests",
    "pytest-xdist": "runs the tests on several cores",
    "ruff": "lints and formats; it replaces flake8, isort, pydocstyle and black",
    "selenium": "opens the report in an installed browser; playwright downloads browsers",
    "stable-baselines3": "a SAC to compare with, in tests and `ngt bench`",
    "types-pyyaml": "the types of pyyaml, for mypy",
    "types-tqdm": "the types of tqdm, for mypy",
}
