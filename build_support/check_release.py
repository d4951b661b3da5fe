"""Check that a tag can be released: all files name its version, and the changelog describes it.

python build_support/check_release.py v0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# where the version is repeated, because the format of the file cannot compute it
REPEATED = {
    "CITATION.cff": r"^version: (\S+)$",
    "conda/recipe.yaml": r"^  version: \"(\S+)\"$",
}


def read_version() -> str:
    """The version in the one place that defines it."""
    return _find_text("src/podium/core/version.py", r"^__version__ = \"(\S+)\"$")


def find_version_problems() -> list[str]:
    """Files whose version is not that of the package."""
    version = read_version()
    named = {path: _find_text(path, pattern) for path, pattern in REPEATED.items()}
    return [
        f"{path} has version {other}, the package {version}"
        for path, other in named.items()
        if other != version
    ]


def find_release_problems(tag: str) -> list[str]:
    """What keeps a tag from being released."""
    version = read_version()
    problems = find_version_problems()
    if tag != f"v{version}":
        problems.append(f"the tag is {tag}, but the version is {version}; tag v{version}")
    heading = re.search(rf"^## {re.escape(version)}\b(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    if heading is None or "unreleased" in heading[1]:
        problems.append(f"CHANGELOG.md has no released section {version}; replace (unreleased) by the date")
    return problems


def _find_text(path: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.M)
    if match is None:
        raise ValueError(f"{path} has no line that matches {pattern}")
    return match[1]


if __name__ == "__main__":
    release_problems = find_release_problems(sys.argv[1])
    print("\n".join(release_problems) or f"{sys.argv[1]} can be released")
    sys.exit(bool(release_problems))
