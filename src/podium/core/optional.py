"""Optional packages: where one is missing, the message names the extra that installs it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, NamedTuple

from podium.core.errors import MessageText, MissingPackageError


class OptionalPackage(NamedTuple):
    """The extra that installs a package, and what needs the package, as the subject of a sentence."""

    extra: str
    user: str


_STUDIO = OptionalPackage("studio", "the studio and the service need")
# by import name; everything that Podium imports beyond numpy
PACKAGES = {
    "altair": OptionalPackage("plots", "reports and charts need"),
    "click": OptionalPackage("cli", "the command line needs"),
    "fastapi": _STUDIO,
    "haystack": OptionalPackage("haystack", "the joiner for Haystack needs"),
    "highspy": OptionalPackage("exact", "proofs of optimal rankings of many items need"),
    "hypothesis": OptionalPackage("test", "the strategies for property tests need"),
    "jinja2": _STUDIO,
    "lancedb": OptionalPackage("lancedb", "the reranker for LanceDB needs"),
    "langchain_core": OptionalPackage("langchain", "the retriever for LangChain needs"),
    "lightgbm": OptionalPackage("lightgbm", "boosted trees need"),
    "mcp": OptionalPackage("mcp", "the MCP server needs"),
    "llama_index": OptionalPackage("llama-index", "retriever and postprocessor for LlamaIndex need"),
    "mlflow": OptionalPackage("mlflow", "the MLflow flavor needs"),
    "msgspec": _STUDIO,
    "narwhals": OptionalPackage("arrow", "dataframes need"),
    "pandas": OptionalPackage("pandas", "pandas frames need"),
    "polars": OptionalPackage("polars", "polars frames need"),
    "prometheus_client": _STUDIO,
    "pyarrow": OptionalPackage("arrow", "Parquet, Arrow and dataframes need"),
    "pydantic": _STUDIO,
    "python_multipart": _STUDIO,
    "pyspark": OptionalPackage("spark", "the engine spark needs"),
    "pyterrier": OptionalPackage("pyterrier", "the transformer for PyTerrier needs"),
    "ray": OptionalPackage("ray", "the engine ray needs"),
    "rich": OptionalPackage("cli", "tables and progress bars on a terminal need"),
    "sklearn": OptionalPackage("sklearn", "the estimator for scikit-learn needs"),
    "torch": OptionalPackage("torch", "computation on a device needs"),
    "uvicorn": _STUDIO,
    "vl_convert": OptionalPackage("plots", "reports and charts need"),
    "xxhash": OptionalPackage("arrow", "sharded data need"),
}


def require_module(name: str, user: MessageText = "", alternative: MessageText = "") -> Any:
    """Import a module of an optional package, or raise `MissingPackageError` with the line that installs it.

    `user` says what needs the package, verb included, where the table of packages is too general;
    `alternative` is another remedy.

    >>> require_module("json").dumps([1])
    '[1]'
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # a package that is here may lack one of its own requirements: the same extra installs that one too
        missing = (error.name or package).partition(".")[0]
        raise _build_error(package, missing, user, alternative) from None


def check_package(package: str, extra: str = "", user: MessageText = "") -> None:
    """Raise `MissingPackageError` unless an optional package is installed; it is not imported.

    `extra` and `user` are for packages that the table does not know.
    """
    if not is_installed(package):
        raise _build_error(package, package, user, extra=extra)


def check_extra(extra: str) -> None:
    """Raise `MissingPackageError` unless all packages of an extra are installed; none of them is imported."""
    for package, optional in PACKAGES.items():
        if optional.extra == extra:
            check_package(package)


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported.

    >>> is_installed("json"), is_installed("no_such_package")
    (True, False)
    """
    if package in sys.modules:
        return sys.modules[package] is not None
    return importlib.util.find_spec(package) is not None


def _build_error(
    package: str, missing: str, user: MessageText = "", alternative: MessageText = "", extra: str = ""
) -> MissingPackageError:
    if package in PACKAGES:
        extra, user = extra or PACKAGES[package].extra, user or PACKAGES[package].user
    parts = _to_parts(user)
    last = (", or ", *_to_parts(alternative)) if alternative else ()
    install = f" {missing}, which is not installed; pip install 'podium-rank[{extra}]'"
    return MissingPackageError(*parts, install, *last, package=missing, extra=extra)


def _to_parts(text: MessageText) -> tuple[Any, ...]:
    return text if isinstance(text, tuple) else (text,)
