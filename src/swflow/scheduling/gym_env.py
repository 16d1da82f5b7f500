"""A Gymnasium environment: an agent picks the next job of a recorded workload's queue."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from swflow.errors import SwflowError
from swflow.jobs.eligibility import eligible_jobs, require_supported
from swflow.jobs.table import Workload, check_workload
from swflow.scheduling.plugins.protocol import Job, Replay, plain_jobs
from swflow.scheduling.refusals import EVENT_COLUMNS
from swflow.scheduling.simulate import SLOWDOWN_BOUND

#: What an agent sees of a waiting job, each between 0 and 1.
FEATURES = ("wait", "estimate", "processors", "free", "fits", "user", "executable", "waits")

#: Waits and estimates of this length or more look alike, seconds.
LONGEST = 5 * 24 * 3600.0

#: Why agents do not support columns of jobs, by column.
_UNSUPPORTED = {name: f"column {name}: not available to agents; drop the column" for name in EVENT_COLUMNS}


class SchedulingEnv(gymnasium.Env[np.ndarray, np.int64]):
    """
    An agent picks the next job; EASY backfills around a job that has to wait; the reward is minus the mean slowdown.

    The common setting of the field: D. Zhang, D. Dai, Y. He, F. S. Bao, B. Xie, "RLScheduler: an automated HPC batch
    job scheduler using reinforcement learning", SC 2020, section IV. An episode is a sequence of consecutive jobs of
    the workload, on an empty machine. At every step the agent picks one of the waiting jobs that it sees. If the job
    does not fit it gets a reservation, and time goes on until it starts; meanwhile, with ``backfill``, jobs start that
    do not delay it. The reward is 0 but for the last step, where it is minus the mean bounded slowdown of all jobs.

    Parameters
    ----------
    workload : Workload
        Its jobs and machine, such as `swflow.workload.clean.open_workload` gives.
    jobs : int
        Jobs of an episode.
    visible : int
        How many waiting jobs the agent sees, in the order of submission; more wait unseen.
    backfill : bool
        Whether jobs may overtake one that was picked and waits.

    Raises
    ------
    SwflowError
        If the workload has fewer jobs than an episode, is invalid, or has columns that agents do not support.

    Notes
    -----
    The observation has the shape (``visible``, 8), float32, with the columns of `FEATURES`; rows without a job are 0.
    An action that names such a row picks the last visible job; `action_masks` and ``info["action_mask"]`` tell which
    rows have a job. Always choosing row 0 reproduces EASY. ``gymnasium.make("swflow/Scheduling-v0", workload=...)``
    creates the environment, too.

    Examples
    --------
    >>> from swflow.workload.clean import open_workload          # doctest: +SKIP
    >>> env = SchedulingEnv(open_workload("kth.swf.gz"))          # doctest: +SKIP
    >>> observation, info = env.reset(seed=1)                     # doctest: +SKIP
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own form

    def __init__(self, workload: Workload, jobs: int = 256, visible: int = 128, backfill: bool = True) -> None:
        if not 1 <= jobs <= workload.jobs.height:
            raise SwflowError(f"{workload.name}: an episode of {jobs:,} jobs, but it has {workload.jobs.height:,}")
        if workload.machine.resources:
            raise SwflowError(f"{workload.name}: agents schedule processors only; give a machine without resources")
        table = eligible_jobs(workload.jobs, workload.name)
        table = check_workload(table, workload.machine.processors, workload.name)
        require_supported(table, _UNSUPPORTED, workload.name)
        run = table["run_time"].to_numpy()
        planned = np.maximum(np.maximum(run, table["estimate"].to_numpy()), 1.0)
        self._jobs, self._run = plain_jobs(table, planned), run.tolist()
        self._length, self._visible, self._backfill = jobs, visible, backfill
        self._processors = workload.machine.processors
        self._numbers = {
            name: max((getattr(job, name) or 0 for job in self._jobs), default=0) + 1
            for name in ("user_id", "executable_id")
        }
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (visible, len(FEATURES)), np.float32)
        self.action_space = gymnasium.spaces.Discrete(visible)
        self._replay = Replay([], [], self._processors)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, object]]:
        """
        Begin an episode.

        Parameters
        ----------
        seed : int, optional
            Of the draw of the episode's first job.
        options : dict, optional
            ``first``: the row of the episode's first job, instead of a draw.
        """
        super().reset(seed=seed)
        last = len(self._jobs) - self._length
        first = (options or {}).get("first")
        first = int(self.np_random.integers(last + 1)) if first is None else int(first)
        if not 0 <= first <= last:
            raise SwflowError(f"first: {first:,} is not from 0 to {last:,}")
        part = self._jobs[first : first + self._length]
        episode = [replace(job, number=number) for number, job in enumerate(part)]
        self._replay = Replay(episode, self._run[first : first + self._length], self._processors)
        self._replay.advance()
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        """
        Start a visible job, or reserve processors for it, and advance until the next choice.

        Parameters
        ----------
        action : int
            Row of the observation, 0 to ``visible - 1``.

        Returns
        -------
        observation, reward, terminated, truncated, info
            The last step's ``info`` has ``mean_bounded_slowdown`` and ``mean_wait_time`` (s) of the episode.

        Raises
        ------
        SwflowError
            If the episode is over, or the action is not in the action space.
        """
        replay = self._replay
        if not replay.queue:
            raise SwflowError("step: the episode is over; call reset")
        value = np.asarray(action)  # NumPy scalars and 0-d arrays are whole numbers, too
        if value.ndim or value.dtype.kind not in "iu" or not self.action_space.contains(np.int64(value)):
            raise SwflowError(f"step: action {action!r}; expected a whole number from 0 to {self._visible - 1}")
        seen = replay.queue[: self._visible]
        self._serve(seen[min(int(action), len(seen) - 1)])
        while not replay.queue and replay.advance():
            pass
        over = not replay.queue
        reward = -self._summary()["mean_bounded_slowdown"] if over else 0.0
        return self._observe(), reward, over, False, self._info() | (self._summary() if over else {})

    def action_masks(self) -> np.ndarray:
        """
        Return which actions name a waiting job, as MaskablePPO of sb3-contrib asks for them.

        Returns
        -------
        bool array of shape (visible,)
        """
        return np.arange(self._visible) < len(self._replay.queue)

    def _serve(self, picked: Job) -> None:
        """Start the job as soon as it fits, and meanwhile those that do not delay it."""
        replay, machine = self._replay, self._replay.machine
        while picked.processors > machine.free:
            if self._backfill:
                shadow, extra = machine.shadow(picked)
                for job in list(replay.queue):
                    in_time = replay.now + job.estimate <= shadow
                    if job is not picked and job.processors <= machine.free and (in_time or job.processors <= extra):
                        extra -= 0 if in_time else job.processors
                        replay.start([job])
            if not replay.advance():
                raise SwflowError(f"step: job {picked.job_id}: {picked.processors} processors are never free")
        replay.start([picked])

    def _observe(self) -> np.ndarray:
        replay, machine = self._replay, self._replay.machine
        seen = np.zeros(self.observation_space.shape or (0,), np.float32)
        for row, job in enumerate(replay.queue[: self._visible]):
            seen[row] = (
                min((replay.now - job.submit_time) / LONGEST, 1.0),
                min(job.estimate / LONGEST, 1.0),
                job.processors / machine.processors,
                machine.free / machine.processors,
                job.processors <= machine.free,
                (job.user_id or 0) / self._numbers["user_id"],
                (job.executable_id or 0) / self._numbers["executable_id"],
                1.0,
            )
        return seen

    def _info(self) -> dict[str, object]:
        mask = self.action_masks().astype(np.int8)
        return {"now": self._replay.now, "waiting": len(self._replay.queue), "action_mask": mask}

    def _summary(self) -> dict[str, float]:
        """Return the means over the episode's jobs; times in seconds."""
        replay = self._replay
        wait = np.array([job.start_time - job.submit_time for job in replay.jobs])
        run = np.array(replay.run)
        slowdown = np.maximum((wait + run) / np.maximum(run, SLOWDOWN_BOUND), 1.0)
        return {"mean_bounded_slowdown": float(slowdown.mean()), "mean_wait_time": float(wait.mean())}


gymnasium.register("swflow/Scheduling-v0", entry_point="swflow.scheduling.gym_env:SchedulingEnv")
