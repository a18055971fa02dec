"""Functions that film an episode of a policy, without a display."""

from __future__ import annotations

import math
import os
import sys
from numbers import Real
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from ngt.agent.policy import Policy
from ngt.errors import UserError
from ngt.experience.envs import make
from ngt.experience.workers import Env, reason
from ngt.foreign.extras import install
from ngt.views.clip import Clip

RATE = 25  # maximum number of frames per second; a GIF's frame times are multiples of 0.01 seconds


def need_no_display() -> None:
    """Let MuJoCo and pygame render without a display, unless the user has chosen otherwise.

    Call this function before an env is created.
    """
    if sys.platform == "linux":
        os.environ.setdefault("MUJOCO_GL", "egl")
        for device in ("VIDEO", "AUDIO"):
            os.environ.setdefault(f"SDL_{device}DRIVER", "dummy")


def film(
    env_id: str,
    actor: Policy,
    seed: int,
    seconds: float,
    *,
    terminate_when_unhealthy: bool = True,
) -> Clip:
    """Film an episode of a deterministic policy, for `seconds` or until the episode ends.

    The clip plays in real time.
    """
    env = make(env_id, terminate_when_unhealthy=terminate_when_unhealthy, render_mode="rgb_array")
    try:
        step = step_seconds(env_id, env)
        every = max(1, round(1 / (RATE * step)))
        _prepare(env)
        obs, frames = env.reset(seed=seed)[0], []
        for i in range(max(1, round(seconds / step))):
            if i % every == 0:
                frames.append(_render(env_id, env))
            action = actor(torch.from_numpy(obs)[None, None])[0, 0].numpy()
            obs, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        return Clip(frames, every * step)
    finally:
        env.close()


def step_seconds(env_id: str, env: Env) -> float:
    """Return the seconds that an env simulates per step: its `dt`, or 1 / its `render_fps`."""
    step: Any = getattr(env.unwrapped, "dt", None)
    if step is None and (rate := env.metadata.get("render_fps")):
        step = 1 / rate if isinstance(rate, Real) else rate  # refused below if it is no number
    if step is None:
        raise UserError(
            f"env {env_id!r}: its metadata lacks 'render_fps', the steps per second of a video; "
            f"add it to the env's class"
        )
    seconds = float(step) if isinstance(step, Real) else math.nan  # NumPy's numbers are Real, too
    if not 0 < seconds < math.inf:
        raise UserError(
            f"env {env_id!r}: a step's seconds, its `dt` or 1 / render_fps, are {step!r:.40}, not "
            f"a number above 0; correct them in the env's class"
        )
    return seconds


def _mujoco(env: Env) -> bool:
    """Return True if MuJoCo renders the env, through gymnasium or dm_control."""
    return hasattr(env.unwrapped, "mujoco_renderer") or hasattr(env.unwrapped, "render_kwargs")


def _prepare(env: Env) -> None:
    """If MuJoCo renders the env, choose a camera and turn on fast rendering.

    Call this function before the first frame.
    """
    inner: Any = env.unwrapped
    if not _mujoco(env):
        return
    dm_control = hasattr(inner, "render_kwargs")
    model = inner._env.physics.model if dm_control else inner.model
    camera = 0 if model.ncam else -1  # the camera that follows the body, or a free camera
    if dm_control:
        inner.render_kwargs = {"camera_id": camera, "width": 480, "height": 360}
    else:
        inner.mujoco_renderer.camera_id = camera
        if camera < 0:  # the default free camera is too far away for a small picture
            near = {"trackbodyid": -1, "distance": model.stat.extent, "azimuth": 120.0}
            inner.mujoco_renderer.default_cam_config = near
    # On a CPU, shadows and multisampling take 20 times as long as everything else.
    model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
    # Reflections and small moving tiles account for most of a GIF's size.
    model.mat_reflectance[:] = 0
    model.mat_texrepeat[:] /= 1 if dm_control else 3


def _render(env_id: str, env: Env) -> NDArray[np.uint8]:
    """Render a frame, shape (height, width, 3). Raise UserError if the env can't be rendered."""
    try:
        frame: Any = env.render()
    except gym.error.DependencyNotInstalled as error:  # such as pygame
        lack = reason(error).partition(",")[0]  # the rest is gymnasium's own advice
        raise UserError(f"env {env_id!r}: {lack}; {install('video')}") from None
    except Exception as error:  # each GL library raises its own types of errors
        if not _mujoco(env):
            raise UserError(f"env {env_id!r}: its render() raised {reason(error)}") from error
        raise UserError(
            f"MUJOCO_GL: {os.environ.get('MUJOCO_GL')} can't render here "
            f"({' '.join(str(error).split()) or type(error).__name__:.200}); use egl "
            f"(Debian: libegl1 libopengl0 libgl1-mesa-dri) or osmesa (libosmesa6)"
        ) from None
    if np.ndim(frame) != 3 or np.shape(frame)[2] != 3:
        raise UserError(
            f"env {env_id!r}: render() returned {type(frame).__name__} of shape {np.shape(frame)}, "
            f"expected a picture (height, width, 3); support the render mode 'rgb_array'"
        )
    return np.asarray(frame, np.uint8)
