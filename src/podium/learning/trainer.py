"""The training loop: passes over an objective, of which validation data, if any, choose the best."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from podium.core.progress import Progress, no_progress
from podium.kernels import dispatch
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState
from podium.learning.objective import Objective
from podium.learning.plan import ALL_PASSES, Plan

__all__ = ["TrainedWeights", "train", "train_members"]


class TrainedWeights(NamedTuple):
    """The weights of the best pass by the validation metric, or of the last pass without validation data."""

    weights: F8
    pass_number: int
    quality: float  # by the validation metric; -inf without validation data
    losses: F8  # mean loss of each pass, 0 where the objective does not compute it


def train(
    objective: Objective, plan: Plan, seed: int | tuple[int, ...], progress: Progress = no_progress
) -> TrainedWeights:
    """Improve the weights of an objective pass by pass.

    Weights that are averaged over a number of passes are compared only once there are that many: an average
    over fewer passes would be selected by chance.
    """
    random = np.random.default_rng(seed)
    weights = objective.init_weights(random)
    adam = np.zeros_like(weights), np.zeros_like(weights), np.zeros(1, np.int64)
    total, mean, losses = np.zeros_like(weights), np.zeros_like(weights), np.zeros(plan.passes)
    best, kept, best_quality = weights.copy(), 0, -np.inf
    for done in range(1, plan.passes + 1):
        rate = plan.rate / (1 + (done - 1) / plan.decay) if plan.decay else plan.rate
        lost, weight = objective.run_pass(
            OptimizerState(
                weights,
                *adam,
                plan.optimizer == "adam",
                rate,
                plan.l2,
                objective.nonnegative,
                objective.center,
            ),
            random,
        )
        losses[done - 1] = lost / max(weight, 1e-300)
        current, quality = weights, None
        if plan.average == ALL_PASSES:
            total += weights
            current = total / done
        elif plan.average is not None:
            mean += (weights - mean) / min(done, plan.average)
            current = mean
        if done >= min(plan.average or 1, plan.passes):
            quality = objective.validate(current)
            if quality is None or quality > best_quality:
                best, kept = current.copy(), done
                best_quality = -np.inf if quality is None else quality
        progress(done, plan.passes, "learning")
        if quality is not None and plan.patience and done - kept >= plan.patience:
            break
    return TrainedWeights(best, kept, float(best_quality), losses)


class _TrainingStopped(Exception):
    """A member stops because another one failed."""


def train_members(objective: Objective, plan: Plan, progress: Progress) -> list[TrainedWeights]:
    """Train all members, in threads if possible; when one fails or the user interrupts, all stop soon."""
    stopped = threading.Event()

    def run_member(number: int) -> TrainedWeights:
        def report_progress(done: int, total: int, what: str) -> None:
            if stopped.is_set():
                raise _TrainingStopped
            progress(number * total + done, plan.members * total, what)

        try:
            return train(objective, plan, (plan.seed, number), report_progress)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(min(plan.members, dispatch.count_threads()) if objective.threads else 1) as pool:
        jobs = [pool.submit(run_member, number) for number in range(plan.members)]
        try:
            wait(jobs)
        except BaseException:
            stopped.set()  # an interrupt reaches only this thread
            raise
    problems = [problem for job in jobs if (problem := job.exception()) is not None]
    if problems:  # report the cause rather than its effects
        raise next((p for p in problems if not isinstance(p, _TrainingStopped)), problems[0])
    return [job.result() for job in jobs]
