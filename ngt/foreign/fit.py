"""A check that the episodes in another project's file are of the env that the user named."""

from __future__ import annotations

import re

from ngt.errors import UserError
from ngt.experience.envs import OURS, TASKS, Task, get_task
from ngt.foreign.found import Found


def check_fit(found: Found, env: str, where: str) -> None:
    """Check the sizes of observations and actions, and the env that the file itself names.

    Raise UserError if the sizes differ from the env's, or if both envs belong to the suite but
    differ in more than their version. The message says which env to pass. In other cases, e.g. if
    the env is the user's own, add a note to `found`.
    """
    task = get_task(env)
    made_on = f"it was recorded on {found.gym_id}, not on {env}"
    known = found.gym_id in (None, task.gym_id)
    for episode in found.episodes:
        obs, act = episode.obs.shape[1:], episode.action.shape[1:]
        if (obs, act) != sizes(task):
            raise UserError(
                f"{where}: found observations of shape {obs} and actions of shape {act}, expected "
                f"{(task.obs,)} and {(task.act,)} on {env}; {'' if known else f'{made_on}; '}"
                f"{_remedy(found, obs, act)}"
            )
    if known:
        return
    kin = _of_family(found, list(TASKS.values()))
    if task.id in OURS and kin and task not in kin:
        raise UserError(f"{where}: {made_on}; {_remedy(found, *sizes(task))}")
    found.notes.append(made_on)


def sizes(task: Task) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of an observation and of an action."""
    return (task.obs,), (task.act,)


def _remedy(found: Found, obs: tuple[int, ...], act: tuple[int, ...]) -> str:
    """Return what to do with episodes of these shapes."""
    fitting = [task for task in TASKS.values() if sizes(task) == (obs, act)]
    if found.gym_id:
        fitting = _of_family(found, fitting)
    if fitting:
        return f"pass --env {' or --env '.join(task.id for task in fitting)}"
    return (
        f"add {found.gym_id or 'the env of these episodes'} with ngt.experience.envs.register in a "
        f"module listed in the config's `imports`, and pass its id as --env"
    )


def _of_family(found: Found, tasks: list[Task]) -> list[Task]:
    """Return the tasks whose env is, except for its version, the env that the file names."""
    return [task for task in tasks if _unversioned(task.gym_id) == _unversioned(found.gym_id or "")]


def _unversioned(gym_id: str) -> str:
    return re.sub(r"-v\d+$", "", gym_id)
