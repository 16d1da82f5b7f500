"""Models that draw whole jobs of a log: independently of each other, or repeated as the log repeats them."""

from dataclasses import dataclass

import numpy as np

from swflow.workload.models.pools import Plain, as_plain, of_plain
from swflow.workload.models.repetition import repetition_lengths
from swflow.workload.models.zipf import Zipf, fit_zipf


@dataclass(frozen=True)
class ResampleModel:
    """
    The jobs of a log, without their order.

    Each array has an element per different job: its run time (seconds), size, estimate (seconds, NaN if unknown), and
    the number of jobs of the log with these values.
    """

    run_times: np.ndarray
    processors: np.ndarray
    estimates: np.ndarray
    jobs: np.ndarray

    def to_dict(self) -> dict[str, object]:
        """Return the model as JSON-compatible data; an unknown estimate is null."""
        return as_plain(self) | {
            "processors": self.processors.astype(np.int64).tolist(),
            "estimates": [None if np.isnan(estimate) else estimate for estimate in self.estimates.tolist()],
        }

    @classmethod
    def from_dict(cls, content: Plain) -> "ResampleModel":
        """Create a model from the result of `to_dict`."""
        return cls(**of_plain(content) | {"jobs": np.array(content["jobs"], dtype=np.int64)})

    def draw(self, jobs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw run times, sizes and estimates of jobs, with replacement."""
        cumulative = np.cumsum(self.jobs)
        rows = np.searchsorted(cumulative, rng.random(jobs) * cumulative[-1], side="right")
        return self.run_times[rows], self.processors[rows], self.estimates[rows]


@dataclass(frozen=True)
class RepetitionModel:
    """
    The jobs of a log, and the distribution of the lengths of repetitions of equal jobs in a row.

    References
    ----------
    D. G. Feitelson's model of locality of sampling, as T. N. Minh, L. Wolters, "Modeling parallel system workloads
    with temporal locality", JSSPP 2009, section 3.3, summarize it in four steps.
    """

    drawn: ResampleModel
    repetitions: Zipf

    @classmethod
    def from_dict(cls, content: Plain) -> "RepetitionModel":
        """Create a model from its JSON-compatible data."""
        return cls(ResampleModel.from_dict(content["drawn"]), Zipf(**content["repetitions"]))

    def draw(self, jobs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw jobs of the log, each repeated in a row as often as a draw from the Zipf distribution says."""
        lengths = self.repetitions.sample(jobs, rng)
        needed = int(np.searchsorted(np.cumsum(lengths), jobs)) + 1
        run_times, processors, estimates = (
            values.repeat(lengths[:needed])[:jobs] for values in self.drawn.draw(needed, rng)
        )
        return run_times, processors, estimates


def fit_resample(run_times: np.ndarray, processors: np.ndarray, requested: np.ndarray) -> ResampleModel:
    """Return the different jobs of a log with their numbers; an unknown requested time is NaN."""
    columns = np.stack([run_times.astype(float), processors.astype(float), np.nan_to_num(requested, nan=-1)])
    different, counts = np.unique(columns, axis=1, return_counts=True)
    estimates = np.where(different[2] < 0, np.nan, different[2])
    return ResampleModel(different[0], different[1], estimates, counts)


def fit_repetition(run_times: np.ndarray, processors: np.ndarray, requested: np.ndarray) -> RepetitionModel:
    """
    Fit the model of repetitions to a log; jobs are equal if run time and size are.

    Examples
    --------
    >>> fitted = fit_repetition(np.array([5, 5, 5, 7]), np.array([2, 2, 1, 1]), np.full(4, np.nan))
    >>> fitted.repetitions.longest, fitted.drawn.jobs.tolist()
    (2, [1, 2, 1])
    """
    _, job = np.unique(np.stack([run_times, processors]), axis=1, return_inverse=True)
    return RepetitionModel(fit_resample(run_times, processors, requested), fit_zipf(repetition_lengths(job.ravel())))
