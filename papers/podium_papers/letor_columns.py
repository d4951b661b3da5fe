"""Column names of the LETOR feature sets."""

from __future__ import annotations

__all__ = ["COLUMNS"]

_WEB = ("body", "anchor", "title", "url", "whole")

_STATISTICS = ("sum", "min", "max", "mean", "variance")
_MSLR_BY_FIELD = (
    "query terms", "query term ratio", "length", "IDF",
    *(f"{statistic} {of}" for of in ("TF", "normalised TF", "TF.IDF") for statistic in _STATISTICS),
    "boolean", "VSM", "BM25", "LMIR.ABS", "LMIR.DIR", "LMIR.JM",
)  # fmt: skip
_MSLR_ALONE = (
    "URL slashes", "URL length", "inlinks", "outlinks", "PageRank", "SiteRank", "quality", "quality 2",
    "query-URL clicks", "URL clicks", "URL dwell time",
)  # fmt: skip

_MQ2008_BY_FIELD = ("TF", "IDF", "TF.IDF", "length", "BM25", "LMIR.ABS", "LMIR.DIR", "LMIR.JM")
_MQ2008_ALONE = ("PageRank", "inlinks", "outlinks", "URL slashes", "URL length", "child pages")

_OHSUMED_BY_FIELD = (
    "TF", "log TF", "normalised TF", "log normalised TF", "IDF", "log IDF", "ICF", "log normalised TF.IDF", "TF.IDF",
    "log normalised TF.ICF", "BM25", "log BM25", "LMIR.DIR", "LMIR.JM", "LMIR.ABS",
)  # fmt: skip

COLUMNS: dict[str, tuple[str, ...]] = {
    "mslr-web10k-sample": (*(f"{w} {f}" for w in _MSLR_BY_FIELD for f in _WEB), *_MSLR_ALONE),
    "mq2008": (*(f"{w} {f}" for w in _MQ2008_BY_FIELD for f in _WEB), *_MQ2008_ALONE),
    "ohsumed": tuple(f"{w} {f}" for f in ("title", "abstract", "both") for w in _OHSUMED_BY_FIELD),
}
