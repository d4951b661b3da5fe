"""A user's file, which type checkers accept in their strict modes.

`tests/typing/test_typing.py` appends every public name of the packages that are imported here.
"""

import podium
import podium.analysis.annotators
import podium.analysis.experts
import podium.analysis.explain
import podium.analysis.figures
import podium.analysis.leaderboard
import podium.evaluate
import podium.formats
import podium.methods
import podium.metrics
import podium.models
import podium.reporting
import podium.scale
import podium.testing.checks
import podium.testing.samples


def fuse_runs(paths: list[str], qrels: str) -> str:
    """Read, fuse, evaluate and compare, as in the README."""
    fused = podium.fuse([["a", "b", "c"], ["b", "c", "a"]], "rrf(k=20)", weights=[1.0, 2.0])
    ranking: list[str | int] = list(fused.ranking)
    runs = podium.read(paths).preferences
    labels = podium.read(qrels).labels
    assert runs is not None
    assert labels is not None
    consensus: podium.Consensus = podium.make("rrf(k=20)").aggregate(runs)
    own: podium.Aggregator = podium.ReciprocalRankFusion(k=20)
    comparison = podium.compare({"rrf": consensus, "own": own.aggregate(runs)}, labels, "ndcg@10")
    return f"{ranking} {comparison.to_markdown()}"


def rank_models(votes: podium.Preferences) -> podium.analysis.leaderboard.Leaderboard:
    """A leaderboard, saved and loaded."""
    board = podium.analysis.leaderboard.leaderboard(votes)
    podium.analysis.leaderboard.save(board, "board.podium")
    return podium.analysis.leaderboard.load("board.podium")


def fit_model(data: podium.Dataset) -> podium.Consensus:
    """Learn from labels, save and load."""
    assert data.labels is not None
    model = podium.methods.SvdAggregator(passes=3).fit(data.preferences, data.labels)
    podium.save(model, "model.podium", overwrite=True)
    return model.aggregate(data.preferences)


def misspell_names() -> list[object]:
    """A misspelled name is an error in every package."""
    names: list[object] = []
    names.append(podium.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    names.append(podium.methods.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    names.append(podium.metrics.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    names.append(podium.formats.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    names.append(podium.evaluate.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    names.append(podium.scale.Missing)  # type: ignore[attr-defined]  # pyright: ignore
    return names
