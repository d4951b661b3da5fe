"""podium doctor: Check the installation and input files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from podium.cli._options import add_option
from podium.cli.input import Input, with_input
from podium.cli.output import Output, print_json, print_table, with_output
from podium.core.optional import PACKAGES, is_installed
from podium.core.version import __version__

if TYPE_CHECKING:
    from podium.data.ids import Ids
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences


class DoctorFinding(NamedTuple):
    """One line of the report; `ok` is None for plain facts."""

    what: str
    ok: bool | None
    detail: str


@click.command(name="doctor")
@add_option(Input, "qrels", "Judgements to check against the input.")
@with_input
@with_output
def verb(source: Input, output: Output) -> None:
    """Check the installation and, if files are given, their content. Exit code 1 if a check fails.

    With files it ends with what `auto` would do with them, and what would make the answer better.

    \b
    podium doctor
    podium doctor *.run --qrels qrels.txt
    """
    findings = list(_check_installation())
    if source.files:
        findings += _check_data(source.preferences, source.optional_labels)
        findings += _describe_answer(source.preferences, source.optional_labels)
    if output.json:
        print_json([f._asdict() for f in findings])
    else:
        mark = {True: "ok", False: "WRONG", None: ""}
        print_table(["check", "", "detail"], [(f.what, mark[f.ok], f.detail) for f in findings], left=3)
    if any(f.ok is False for f in findings):
        sys.exit(1)


def _check_installation() -> Iterator[DoctorFinding]:
    import importlib.metadata as metadata

    from podium.kernels import dispatch

    yield DoctorFinding("podium", None, f"{__version__} on Python {sys.version.split()[0]}")
    yield _run_check("numpy", lambda: metadata.version("numpy"))
    distributions = metadata.packages_distributions()
    for extra in sorted({optional.extra for optional in PACKAGES.values()}):
        packages = [name for name, optional in PACKAGES.items() if optional.extra == extra]
        if missing := [name for name in packages if not is_installed(name)]:
            detail = f"{', '.join(missing)} not installed; pip install 'podium-rank[{extra}]'"
        else:
            detail = ", ".join(f"{name} {metadata.version(distributions[name][0])}" for name in packages)
        yield DoctorFinding(f"extra {extra}", None, detail)
    yield DoctorFinding("threads", None, f"{dispatch.count_threads()} (set by PODIUM_THREADS)")
    yield _run_check("compiled kernels", _check_compiled_core)


def _run_check(what: str, work: Callable[[], str]) -> DoctorFinding:
    try:
        return DoctorFinding(what, True, work())
    except Exception as error:
        return DoctorFinding(what, False, f"{type(error).__name__}: {error}")


def _check_compiled_core() -> str:
    """Import every compiled module, and compare one ranking with sums that numpy computes."""
    import numpy as np

    from podium.data.demo import demo
    from podium.kernels import dispatch
    from podium.methods.base import make

    modules = dispatch.import_core()
    preferences = demo(20).preferences
    lists = preferences.lists
    expected = np.bincount(lists.item, 1 / (60.0 + lists.rank), minlength=len(preferences.index.items))
    if not np.allclose(make("rrf", k=60).aggregate(preferences).scores, expected, rtol=1e-12, atol=0):
        raise RuntimeError("the scores of 20 queries are not the sums that numpy computes")
    wide = len(dispatch.list_wide_modules())
    path = f"{wide} of them with AVX2" if wide else "all portable"
    loaded = f"{len(modules)} modules load from {dispatch.find_core_folder()} ({path})"
    return f"{loaded}, and agree with numpy on 20 queries"


def _check_data(preferences: Preferences, labels: Labels | None) -> Iterator[DoctorFinding]:
    import numpy as np

    lists, index = preferences.lists, preferences.index
    yield DoctorFinding(
        "input", None, f"{preferences!r}, forms: {', '.join(sorted(f.value for f in preferences.forms))}"
    )
    if lists.rows:
        answered = np.bincount(lists.expert, minlength=len(preferences.experts))
        for code in np.flatnonzero(answered < len(index))[:10]:
            yield DoctorFinding(
                f"expert {preferences.experts[int(code)]}",
                None,
                f"answers {answered[code]} of {len(index)} queries",
            )
        listings = np.bincount(lists.item, minlength=len(index.items))
        yield DoctorFinding("shared items", bool((listings > 1).any()) or len(preferences.experts) == 1,
                      f"{(listings > 1).mean():.1%} of the items are listed by two or more experts")  # fmt: skip
        yield DoctorFinding(
            "unlisted items", None, f"{int((listings == 0).sum())} candidates are listed by no expert"
        )
    if labels is not None:
        theirs = set(labels.queries)
        both = sum(q in theirs for q in preferences.queries)
        grades = labels.align(index)
        yield DoctorFinding(
            "judged queries",
            both > 0,
            f"{both} of {len(index)} queries have judgements"
            f"{_describe_mismatch(preferences.queries, labels.queries, both)}",
        )
        known = ~np.isnan(grades)
        apart = _describe_mismatch(index.items, labels.index.items, int(known.any())) if both else ""
        yield DoctorFinding(
            "judged items", bool(known.any()), f"{known.mean():.1%} of the items are judged{apart}"
        )
        levels = np.unique(grades[known])
        if len(levels):
            yield DoctorFinding("distinct grades", len(levels) > 1, f"{levels[:10].tolist()}")


def _describe_answer(preferences: Preferences, labels: Labels | None) -> Iterator[DoctorFinding]:
    """What `auto` would do with these files, and what would make its answer better."""
    from podium.analysis.answer import suggest_improvements
    from podium.data.dataset import Dataset
    from podium.evaluate.splits import find_labeled_queries
    from podium.evaluate.tuning.labeled_choice import FEW
    from podium.methods.automatic_choice import choose_method

    judged = 0 if labels is None else int(find_labeled_queries(Dataset(preferences, labels)).sum())
    if judged >= FEW:
        text = (
            f"compares all methods on the {judged:,} judged queries; run podium fuse FILES --qrels QRELS, or "
            "podium fit FILES --qrels QRELS -m auto -o MODEL"
        )
    else:
        recommendation = choose_method(preferences)
        reason = recommendation.reason or "there is one expert, and its order is kept"
        text = f"{recommendation.method!r}: {reason}"
        if judged:
            there = "there is 1" if judged == 1 else f"there are {judged}"
            text += f" (a choice by labels takes {FEW} judged queries, and {there})"
    yield DoctorFinding("auto", None, text)
    for advice in suggest_improvements(preferences, judged):
        yield DoctorFinding("a better answer", None, advice)


def _describe_mismatch(ours: Ids, theirs: Ids, shared: int) -> str:
    """Unmatched ids side by side: usually the same ids in two notations."""
    if shared:
        return ""
    return f"; the ids do not match: the input has {ours[:3]}, the judgements have {theirs[:3]}"
