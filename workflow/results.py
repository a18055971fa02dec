"""A scale's existing results, and the receipts of runs, experts and recordings.

A scale is a config file in workflow/config/. A receipt is an empty file, with a hash in its name,
that marks a result as complete. A former result is a complete result that was moved to a separate
folder when the same run or expert was trained again, for example with different settings.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ngt.commands.shared import read_demos
from ngt.experience import shipped
from ngt.experience.demos import subsample
from ngt.experience.envs import TASKS
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey
from ngt.runs.receipt import receipt_hash
from ngt.runs.shipping.ship import is_of
from ngt.runs.status import COMPLETE
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash, demos_file, own_file, resolve_expert


class Results:
    """A scale's results, including the former results.

    Args:
        main: True in the process that plans the workflow, and False in the process of a single job,
            where results are not examined.
    """

    def __init__(self, config: Config, layout: Layout, *, main: bool) -> None:
        self.config, self.layout, self.main = config, layout, main
        self.home, self.work = str(layout.home), str(layout.work)
        self.folders = Folders(layout, config)
        self.expert_hash = {env: config_hash(resolve_expert(config, env)) for env in TASKS}
        self.expert_folder = cache(self._expert_folder)
        self.has_recording = cache(self._has_recording)
        self.read_demos = cache(read_demos)

    def run_hash(self, key: RunKey) -> str:
        """Return the hash of a run's key and of the settings that the config gives the run."""
        return receipt_hash(str(key), self.folders.hashes(key)[0])

    def run_receipt(self, key: RunKey) -> str:
        """Return the path of a run's receipt."""
        return f"{self.layout.run(key)}/done.{self.run_hash(key)}"

    def expert_receipt(self, env: str) -> str:
        """Return the path of the receipt for an env's expert."""
        return f"{self.layout.expert(env)}/done.{self.expert_hash[env]}"

    def recording_receipt(self, env: str) -> str:
        """Return the path of the receipt for an env's recorded demonstrations."""
        return f"{self.layout.demos(env).with_suffix('')}.done.{self.expert_hash[env]}"

    def has_demos(self, env: str) -> bool:
        """Return True if an env's demonstrations exist or can be made.

        With `demos: shipped`, they exist if the env has a shipped expert or the user provides a
        file.
        """
        own = bool(own_file(self.config, env))
        return self.config.demos == "trained" or own or shipped.ships(env)

    def check_demos(self, keys: Iterable[RunKey]) -> None:
        """Raise UserError if a file that no job records lacks the demonstrations of these runs."""
        for key in keys:
            if self.main and (file := demos_file(self.config, key.env)):
                data = self.read_demos(Path(file), key.env)
                subsample(data, key.demos, key.rate, key.seed, f"demonstrations {file}")

    def expert_in_place(self, env: str) -> bool:
        """Return True if an env's expert is complete and is not among the former results."""
        return self.expert_folder(env) == self.layout.expert(env)

    def _expert_folder(self, env: str) -> Path | None:
        """Return the folder of an env's complete expert, or None if there is none.

        The expert may be a former result.
        """
        if not self.main or self.folders.expert_status(env).status in COMPLETE:
            return self.layout.expert(env)
        return self.folders.former_expert(env)

    def _has_recording(self, env: str) -> bool:
        """Return True if an env's recording is intact and is the one that the config names.

        If the expert is complete, the recording must also come from this expert. The name of the
        recording's receipt does not show the expert's seed or the number of episodes, so the
        recording's own content is compared.
        """
        if not self.main:
            return True
        expert = self.expert_folder(env)
        policy = expert / shipped.POLICY if expert else None
        return is_of(self.config, self.layout.demos(env), env, policy)
