"""Write a short video of a policy: a GIF small enough to ship, rendered off screen.

python -m paper.handbook.video HalfCheetah-v4 --out docs/experts/HalfCheetah-v4.gif
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import get_task, make
from ngt.experience.workers import Env
from ngt.files import atomic
from ngt.settings.options import Parser
from paper import command

NAME = "video"
LARGEST = 300_000  # bytes
RATE = 25  # maximum frames per second; a GIF's times are multiples of 0.01 seconds

# (width in pixels, every n-th frame, colours), best first.
QUALITY = (
    (320, 1, 64),
    (280, 1, 48),
    (240, 1, 32),
    (240, 1, 16),
    (200, 1, 16),
    (240, 2, 32),
    (160, 2, 32),
    (120, 2, 16),
)


class Clip(NamedTuple):
    """Frames of RGB bytes, and the number of seconds for which each frame is shown."""

    frames: list[NDArray[np.uint8]]
    seconds: float


def film(env_id: str, actor: Policy, seed: int, seconds: float) -> Clip:
    """Film a deterministic episode in real time, for `seconds` or until it ends."""
    env = make(env_id, render_mode="rgb_array")
    try:
        step: float = env.unwrapped.dt  # type: ignore[attr-defined]
        every = max(1, round(1 / (RATE * step)))
        _prepare(env)
        obs, frames = env.reset(seed=seed)[0], []
        for i in range(round(seconds / step)):
            if i % every == 0:
                frames.append(_render(env))
            action = actor(torch.from_numpy(obs)[None, None])[0, 0].numpy()
            obs, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        return Clip(frames, every * step)
    finally:
        env.close()


def _prepare(env: Env) -> None:
    """Choose a camera and fast rendering. Call this before the first frame."""
    inner: Any = env.unwrapped
    dm_control = hasattr(inner, "render_kwargs")
    model = inner._env.physics.model if dm_control else inner.model
    camera = 0 if model.ncam else -1  # the model's camera, which follows the body, or a free one
    if dm_control:
        inner.render_kwargs = {"camera_id": camera, "width": 480, "height": 360}
    else:
        inner.mujoco_renderer.camera_id = camera
        if camera < 0:  # the env's own camera is too far away for a small picture
            near = {"trackbodyid": -1, "distance": model.stat.extent, "azimuth": 120.0}
            inner.mujoco_renderer.default_cam_config = near
    # On a CPU, shadows and multisampling take 20 times as long as everything else.
    model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
    # Reflections and small moving tiles take most of a GIF's bytes.
    model.mat_reflectance[:] = 0
    model.mat_texrepeat[:] /= 1 if dm_control else 3


def _render(env: Env) -> NDArray[np.uint8]:
    try:
        frame: Any = env.render()
    except Exception as error:  # every GL library raises its own errors
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"MUJOCO_GL: {os.environ.get('MUJOCO_GL')} can't render here ({reason:.200}); use egl "
            f"(Debian: libegl1 libopengl0 libgl1-mesa-dri) or osmesa (libosmesa6)"
        ) from None
    return np.asarray(frame, np.uint8)


def encode(clip: Clip, width: int, every: int, colors: int, comment: str) -> bytes:
    """Return a GIF whose frames share one palette, so that unchanged parts take no bytes."""
    images = [Image.fromarray(frame) for frame in clip.frames[::every]]
    height = round(images[0].height * width / images[0].width)
    small = [image.resize((width, height), Image.Resampling.LANCZOS) for image in images]
    some = small[:: max(1, len(small) // 8)]
    strip = Image.new("RGB", (width, height * len(some)))
    for i, image in enumerate(some):
        strip.paste(image, (0, i * height))
    palette = strip.quantize(colors, dither=Image.Dither.NONE)
    # No dithering: its pattern would change from frame to frame and cost bytes.
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in small)
    out = io.BytesIO()
    first.save(
        out,
        "GIF",
        save_all=True,
        append_images=rest,
        loop=0,
        optimize=True,
        duration=round(1000 * every * clip.seconds),
        comment=comment.encode(),
    )
    return out.getvalue()


def shrink(clip: Clip, comment: str, largest: int = LARGEST) -> bytes:
    """Return the GIF at the best quality that fits. Raise UserError if none fits."""
    for width, every, colors in QUALITY:
        content = encode(clip, width, every, colors, comment)
        if len(content) <= largest:
            return content
    raise UserError(f"--seconds: {len(content)} bytes at the lowest quality; film fewer seconds")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = Parser(
        prog="python -m paper.handbook.video",
        description=(__doc__ or "").splitlines()[0],
        epilog="example: python -m paper.handbook.video HalfCheetah-v4 --out cheetah.gif",
    )
    parser.add_argument("env", help="env id")
    parser.add_argument("--out", type=Path, required=True, help="GIF file")
    parser.add_argument("--policy", type=Path, help="policy file (default: the shipped expert's)")
    parser.add_argument("--seconds", type=float, default=4.0, help="maximum length (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episode (default: 0)")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Film a policy and write the GIF."""
    if sys.platform == "linux":  # EGL needs no display; it must be set before an env is made
        os.environ.setdefault("MUJOCO_GL", "egl")

    def run() -> None:
        args = build_parser().parse_args(argv)
        get_task(args.env)
        if args.out.suffix != ".gif":
            raise UserError(f"--out: {args.out} is not a .gif; give a file name that ends in .gif")
        if args.seconds <= 0:
            raise UserError(f"--seconds: must be above 0, found {args.seconds}")
        if args.policy is None:
            shipped.read(args.env)
        file = args.policy or shipped.DATA / args.env / shipped.POLICY
        actor, env = policy.load(file)
        if env != args.env:
            raise UserError(f"--policy: this policy was trained on {env}, not on {args.env}")
        clip = film(env, actor, args.seed, args.seconds)
        content = shrink(clip, comment_of(file))
        with atomic(args.out) as temporary:
            temporary.write_bytes(content)
        print(f"{args.out}: {len(clip.frames)} frames, {len(content) / 1000:.0f} kB")

    command.one_line_errors(NAME, run)


def comment_of(file: Path) -> str:
    """Return the GIF's comment, which identifies the policy by its hash."""
    return f"policy sha256 {shipped.sha256(file)}"


if __name__ == "__main__":
    main()
