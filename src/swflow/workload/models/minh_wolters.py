"""Temporal locality: the workload model of Minh and Wolters, and its predecessor MBC-LS."""

from dataclasses import dataclass

import numpy as np

from swflow.workload.models.mixtures import COMPONENTS, Mixture, fit_mixture
from swflow.workload.models.pools import Plain, Pools, class_keys, pools_of
from swflow.workload.models.repetition import repetition_lengths, repetition_starts
from swflow.workload.models.zipf import Zipf, fit_zipf

#: Values of the option ``repeats`` of `generate_locality`: how run times repeat within the repetitions of labels.
REPEATS = ("fitted", "at-least-two", "printed")


@dataclass(frozen=True)
class LocalityModel:
    """The parameters fitted to a log."""

    run_times: Mixture  # Gaussians; a component is a run-time label
    label_repetitions: Zipf  # Z_L of the paper: lengths of the repetitions of labels
    value_repetitions: Zipf  # Z_D of the paper: lengths of the repetitions of run times
    repetition_probability: float  # p: the share of the repetitions of labels in which a run time is repeated
    size_classes: np.ndarray  # ascending
    size_class_given_label: np.ndarray  # Pr(class | label), shape (labels, classes)
    sizes: Pools  # sizes of the log's jobs of each pair "label,class"

    @classmethod
    def from_dict(cls, content: Plain) -> "LocalityModel":
        """Create a model from the result of `swflow.workload.models.pools.as_plain`."""
        return cls(
            run_times=Mixture.from_dict(content["run_times"]),
            label_repetitions=Zipf(**content["label_repetitions"]),
            value_repetitions=Zipf(**content["value_repetitions"]),
            repetition_probability=content["repetition_probability"],
            size_classes=np.array(content["size_classes"], dtype=np.int64),
            size_class_given_label=np.array(content["size_class_given_label"], dtype=float),
            sizes=Pools.from_dict(content["sizes"]),
        )


def fit_locality(
    run_times: np.ndarray, processors: np.ndarray, *, components: int = COMPONENTS
) -> tuple[LocalityModel, np.ndarray]:
    """
    Fit the model to the jobs of a log.

    Run times (seconds) and sizes are in the order of the jobs' arrivals; ``components`` is the largest number of
    Gaussians to try. The second result is the class of every job, "label,class".

    References
    ----------
    T. N. Minh, L. Wolters, "Modeling parallel system workloads with temporal locality", JSSPP 2009: steps 1 to 4 of
    section 3.3, Algorithm 1 and the first half of Algorithm 2.
    """
    mixture = fit_mixture(run_times, components=components)
    labels = mixture.classify(run_times)
    sizes = classify_sizes(processors)
    size_classes, given_label = class_given_label(labels, sizes, mixture.components)
    keys = class_keys(labels, sizes)
    model = LocalityModel(
        run_times=mixture,
        label_repetitions=fit_zipf(repetition_lengths(labels)),
        value_repetitions=fit_zipf(repetition_lengths(run_times)),
        repetition_probability=repetition_probability(labels, run_times),
        size_classes=size_classes,
        size_class_given_label=given_label,
        sizes=pools_of(keys, np.asarray(processors, dtype=float)),
    )
    return model, keys


def generate_locality(
    model: LocalityModel, jobs: int, rng: np.random.Generator, *, repeats: str | None = "fitted", window: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Generate run times (whole seconds), sizes, and the class of every job, "label,class".

    ``repeats`` is how run times repeat within the repetitions of labels ("fitted", "at-least-two" or "printed"), which
    is the extension of the model over MBC-LS; None gives MBC-LS. The larger the ``window`` of `permute_labels` is, the
    stronger is the autocorrelation of the run times.

    References
    ----------
    Minh and Wolters 2009, steps 5 to 13 of section 3.3, and sections 4.2 and 4.3. MBC-LS is H. Li, M. Muskulus, L.
    Wolters, "Modeling correlated workloads by combining model based clustering and a localized sampling algorithm",
    ICS 2007. Here, its sizes are those of Minh and Wolters, so that the two models differ in one respect only.

    Notes
    -----
    "printed" is step 10 of the paper: with probability p, a length r is drawn from Z_D until r < R. But Z_D, like the
    log, has almost only lengths of 1, which repeat nothing, and a label that occurs once or twice leaves no room for
    r = 2. Repeated run times are then much rarer than p, the log's share of label repetitions with a repeated run
    time.
    "at-least-two" draws, with probability p, a length r of at least 2 and below R. This agrees with the paper's
    results, which have more repetitions than MBC-LS. Labels that occur once or twice still leave no room, so
    repetitions remain rarer than in the log. According to section 5.1, the authors tried a larger p and rejected it
    because it overfitted.
    "fitted", an addition of swflow, gives p its meaning: r is at least 2 and below R, and is drawn with probability p
    / P(R > 2). A share p of all label repetitions then has a repeated run time, or as many as have room for one.
    """
    labels, lengths = _label_repetitions(model, jobs, window, rng)
    repeated = _repeated(model, lengths, repeats, rng)
    job_labels = np.repeat(labels, lengths)[:jobs]  # the series CW of section 4.2
    run_times = model.run_times.sample(job_labels, rng)[first_of_repetition(lengths, repeated)[:jobs]]
    keys = class_keys(job_labels, _draw_classes(model, job_labels, rng))
    return run_times, model.sizes.draw(keys, rng).astype(np.int64), keys


def repetition_probability(labels: np.ndarray, run_times: np.ndarray) -> float:
    """
    Return the share of the label repetitions in which a run time is repeated: step 4 of section 3.3.

    Labels and run times are in the order of the jobs' arrivals.

    Examples
    --------
    >>> repetition_probability(np.array([1, 1, 2, 2, 2, 1]), np.array([5, 6, 90, 90, 91, 5]))
    0.3333333333333333
    """
    starts = repetition_starts(labels)
    repeats = np.concatenate([np.asarray(run_times[1:]) == np.asarray(run_times[:-1]), [False]])
    repeats[starts[1:] - 1] = False  # a value that repeats across the border of two labels belongs to neither
    return float(np.logical_or.reduceat(repeats, starts).mean())


def classify_sizes(processors: np.ndarray) -> np.ndarray:
    """
    Return the class of each job's size, ``round(log2(jobs of that size)) + 1``: Algorithm 1.

    Sizes with about equally many jobs share a class.

    Examples
    --------
    >>> sizes = np.repeat([4, 10, 7], [250, 300, 1])
    >>> classify_sizes(sizes)[[0, 250, 550]]
    array([9, 9, 1])
    """
    _, inverse, counts = np.unique(processors, return_inverse=True, return_counts=True)
    return (np.rint(np.log2(counts)).astype(np.int64) + 1)[inverse]


def class_given_label(labels: np.ndarray, sizes: np.ndarray, components: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Tabulate the size classes by the run-time labels, numbered from 1: the first half of Algorithm 2.

    The result is the classes that occur, ascending, and Pr(class | label) of shape (components, classes). A label
    without jobs gets the classes of all jobs.

    Examples
    --------
    >>> classes, transition = class_given_label(np.array([1, 1, 1, 1, 2]), np.array([9, 9, 9, 2, 2]), 2)
    >>> classes.tolist(), transition.tolist()
    ([2, 9], [[0.25, 0.75], [1.0, 0.0]])
    """
    classes, column = np.unique(sizes, return_inverse=True)
    counts = np.zeros((components, len(classes)))
    np.add.at(counts, (np.asarray(labels) - 1, column), 1)
    counts[~counts.any(axis=1)] = counts.sum(axis=0)
    return classes, counts / counts.sum(axis=1, keepdims=True)


def permute_labels(labels: np.ndarray, window: int) -> np.ndarray:
    """
    Group equal labels within windows of a series: step 6 of section 3.3.

    In every window, the first label is followed by all its equals, then the next label by its equals. A window of 1
    leaves the series unchanged; the last window may be shorter. The paper shows the procedure only by the example below
    and refers to Li et al. 2007.

    Examples
    --------
    >>> permute_labels([1, 2, 1, 3, 2, 2, 3, 2, 4, 1, 4], 4)
    array([1, 1, 2, 3, 2, 2, 2, 3, 4, 4, 1])
    """
    labels = np.asarray(labels)
    pairs = np.stack([np.arange(len(labels)) // window, labels], axis=1)
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return labels[np.argsort(first[inverse], kind="stable")]


def first_of_repetition(lengths: np.ndarray, repeated: np.ndarray) -> np.ndarray:
    """
    Return, for each job, the index of the job that shares its draw: steps 11 and 12 of section 3.3.

    For each label repetition, ``lengths`` is R and ``repeated`` is r < R, the number of jobs at its start that share
    one run time. Most jobs refer to themselves.

    Examples
    --------
    >>> first_of_repetition(np.array([4, 2]), np.array([3, 0]))
    array([0, 0, 0, 3, 4, 5])
    """
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    own = np.arange(len(starts))
    return np.where(own - starts < np.repeat(repeated, lengths), starts, own)


def _label_repetitions(
    model: LocalityModel, jobs: int, window: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels and their numbers of repetitions until there are enough jobs (steps 5 to 8)."""
    labels: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    missing = jobs
    while missing > 0:
        # whole windows, so that the result does not depend on where one draw ends and the next begins
        count = -(-int(missing / model.label_repetitions.mean + 1) // window) * window
        drawn = rng.choice(model.run_times.components, size=count, p=model.run_times.weights) + 1
        labels.append(permute_labels(drawn, window))
        lengths.append(model.label_repetitions.sample(count, rng))
        missing -= int(lengths[-1].sum())
    return np.concatenate(labels), np.concatenate(lengths)


def _repeated(model: LocalityModel, lengths: np.ndarray, repeats: str | None, rng: np.random.Generator) -> np.ndarray:
    """Draw the number of jobs in each label repetition that share one run time (steps 9 and 10)."""
    if repeats is None:
        return np.zeros(len(lengths), dtype=np.int64)
    chance = rng.random(len(lengths))
    if repeats == "fitted":  # only repetitions of at least 3 labels have room for a repeated run time
        chance *= 1 - model.label_repetitions.cumulative[min(2, model.label_repetitions.longest)]
    drawn = model.value_repetitions.sample_below(lengths, rng, least=1 if repeats == "printed" else 2)
    return np.where(chance <= model.repetition_probability, drawn, 0)


def _draw_classes(model: LocalityModel, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a size class for every label: the second half of Algorithm 2."""
    cumulative = np.cumsum(model.size_class_given_label, axis=1)
    cumulative[:, -1] = 1.0
    chance = rng.random(len(labels))
    return model.size_classes[(chance[:, None] >= cumulative[labels - 1]).sum(axis=1)]
