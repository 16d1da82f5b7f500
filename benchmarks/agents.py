"""
Compare agents in the environment: a random one, fixed rules, and one trained by the cross-entropy method.

    python benchmarks/agents.py kth.swf.gz

An agent consists of eight weights: it picks the waiting job with the highest weighted sum of its features. It is
trained on episodes from the first half of the log and evaluated on episodes from the second half. EASY is the agent
that always picks the head.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from swflow.scheduling.gym_env import FEATURES, SchedulingEnv
from swflow.workload.clean import open_workload

Agent = Callable[[np.ndarray, np.ndarray], int]


def weighted(weights: np.ndarray) -> Agent:
    """Pick the job with the highest weighted sum of features."""
    return lambda seen, mask: int(np.where(mask, seen @ weights, -np.inf).argmax())


def mean_slowdown(env: SchedulingEnv, agent: Agent, firsts: np.ndarray) -> float:
    """Return the mean bounded slowdown over the episodes that begin at these rows."""
    total = 0.0
    for first in firsts:
        seen, info = env.reset(options={"first": int(first)})
        over = False
        while not over:
            seen, reward, over, _, info = env.step(agent(seen, info["action_mask"]))
        total -= reward
    return total / len(firsts)


def train(env: SchedulingEnv, firsts: np.ndarray, rounds: int, draw: np.random.Generator) -> np.ndarray:
    """Search the weights by the cross-entropy method: draw, keep the best quarter, draw around them."""
    mean, spread = np.zeros(len(FEATURES)), np.ones(len(FEATURES))
    for _ in range(rounds):
        tried = draw.normal(mean, spread, (24, len(FEATURES)))
        episodes = draw.choice(firsts, 8, replace=False)
        best = tried[np.argsort([mean_slowdown(env, weighted(weights), episodes) for weights in tried])[:6]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", help="a log (.swf, .swf.gz) or a workload (.parquet)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="gymnasium")
    workload = open_workload(options.log)
    env, draw = SchedulingEnv(workload), np.random.default_rng(options.seed)
    half, last = workload.jobs.height // 2, workload.jobs.height - 256
    train_on, judge_on = draw.integers(0, half - 256, 40), np.sort(draw.integers(half, last, 40))
    began = time.perf_counter()
    weights = train(env, train_on, options.rounds, draw)
    agents: dict[str, Agent] = {
        "random": lambda seen, mask: int(draw.choice(np.flatnonzero(mask))),
        "EASY (the head)": lambda seen, mask: 0,
        "shortest estimate": weighted(-np.eye(8)[FEATURES.index("estimate")]),
        "trained": weighted(weights),
    }
    print(f"{workload.name}: trained for {time.perf_counter() - began:.0f} s; judged on 40 episodes of 256 jobs")
    for name, agent in agents.items():
        print(f"{name:20s} mean bounded slowdown {mean_slowdown(env, agent, judge_on):8.2f}")
    print("weights: " + ", ".join(f"{name} {weight:.2f}" for name, weight in zip(FEATURES, weights, strict=True)))


if __name__ == "__main__":
    main()
