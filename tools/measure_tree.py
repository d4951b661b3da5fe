"""Measure how easy the source tree is to enter: sizes, names, private helpers, and the walks of three commands.

python tools/measure_tree.py                 # sizes and names of src/podium
python tools/measure_tree.py --walks         # also the functions and files that three commands enter
python tools/measure_tree.py --list one-word # the names behind a figure (one-word, participles, classes, once)
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import io
import re
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path

IRREGULAR = (
    "told said made seen kept found known given shown heard taken written drawn built held left met sent gone done"
    " begun spoken taught thought brought bought caught paid laid meant spent stood lost won felt"
)
PARTICIPLES = frozenset(IRREGULAR.split())
NOT_PARTICIPLES = frozenset({"feed", "seed", "need", "speed", "embed", "shed"})


@dataclass(frozen=True)
class Function:
    """One function or method of the tree."""

    name: str
    path: Path
    line: int
    body_lines: int

    @property
    def is_one_word(self) -> bool:
        return "_" not in self.name.strip("_")

    @property
    def is_private(self) -> bool:
        return self.name.startswith("_")

    @property
    def is_participle(self) -> bool:
        word = self.name.strip("_")
        if not self.is_one_word or word in NOT_PARTICIPLES:
            return False
        return word in PARTICIPLES or word.endswith("ed")


@dataclass(frozen=True)
class Tree:
    """What is defined under a folder."""

    lines: dict[Path, int]
    comments: int
    functions: list[Function]
    classes: dict[str, list[Path]]
    uses: collections.Counter[tuple[Path, str]]


def read_tree(root: Path) -> Tree:
    """Parse every module under `root`."""
    tree = Tree({}, 0, [], collections.defaultdict(list), collections.Counter())
    comments = 0
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree.lines[path] = text.count("\n")
        comments += sum(line.lstrip().startswith("#") for line in text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not re.fullmatch(r"__\w+__", node.name):
                    tree.functions.append(Function(node.name, path, node.lineno, count_body_lines(node)))
            elif isinstance(node, ast.ClassDef):
                tree.classes[node.name].append(path)
            elif isinstance(node, ast.Name):
                tree.uses[path, node.id] += 1
            elif isinstance(node, ast.Attribute):
                tree.uses[path, node.attr] += 1
    return Tree(tree.lines, comments, tree.functions, tree.classes, tree.uses)


def count_body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def list_names(tree: Tree, kind: str) -> list[str]:
    """The names behind one of the figures."""
    if kind == "classes":
        return [f"{n}: {', '.join(map(str, p))}" for n, p in sorted(tree.classes.items()) if len(p) > 1]
    choose = {
        "one-word": lambda f: f.is_one_word,
        "participles": lambda f: f.is_participle,
        "once": lambda f: f.is_private and tree.uses[f.path, f.name] == 1,
    }[kind]
    return [f"{f.path}:{f.line} {f.name}" for f in tree.functions if choose(f)]


def print_figures(tree: Tree) -> None:
    """Print sizes and shares."""
    functions = tree.functions
    private = [f for f in functions if f.is_private]
    longest_file = max(tree.lines, key=lambda p: tree.lines[p])
    longest = max(functions, key=lambda f: f.body_lines)
    count = len(functions)
    rows = [
        ("files", f"{len(tree.lines)}"),
        ("lines", f"{sum(tree.lines.values()):,}"),
        ("longest file", f"{tree.lines[longest_file]} ({longest_file})"),
        ("longest function body", f"{longest.body_lines} ({longest.path}:{longest.line} {longest.name})"),
        ("functions", f"{count:,}"),
        ("one-word function names", f"{len(list_names(tree, 'one-word')) / count:.1%}"),
        ("bare participles", f"{len(list_names(tree, 'participles')) / count:.1%}"),
        ("private functions", f"{len(private) / count:.1%}"),
        ("private functions used once", f"{len(list_names(tree, 'once')) / max(len(private), 1):.1%}"),
        ("class names used twice", f"{len(list_names(tree, 'classes'))}"),
        ("own-line comments per 100 lines", f"{100 * tree.comments / sum(tree.lines.values()):.1f}"),
    ]
    for name, value in rows:
        print(f"{name:34}{value}")


class CallRecorder:
    """Records which functions of a package are entered, and which files call which."""

    def __init__(self, root: Path) -> None:
        self.root = f"{root.resolve()}/"
        self.functions: set[tuple[str, str, int]] = set()
        self.calls: set[tuple[str, str]] = set()

    def __call__(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self.root) or code.co_name.startswith("<"):
            return
        self.functions.add((code.co_filename, code.co_name, code.co_firstlineno))
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(self.root):
            self.calls.add((caller.f_code.co_filename, code.co_filename))

    @property
    def files(self) -> set[str]:
        return {path for path, _, _ in self.functions}

    @property
    def mutual_pairs(self) -> list[tuple[str, str]]:
        """Pairs of files that call each other both ways."""
        pairs = sorted((a, b) for a, b in self.calls if a < b and (b, a) in self.calls)
        return [(a.removeprefix(self.root), b.removeprefix(self.root)) for a, b in pairs]


def write_inputs(folder: Path) -> dict[str, list[str]]:
    """Write the demo's runs and judgements and a few votes; the command lines to walk."""
    from podium.data.demo import demo
    from podium.formats import write

    data = demo()
    write(data.preferences, str(folder / "runs.tsv"))
    write(data.labels, str(folder / "labels.qrels"))
    votes = [f"m{i % 7},m{(i * 3 + 1) % 7}" for i in range(60) if i % 7 != (i * 3 + 1) % 7]
    (folder / "votes.csv").write_text("winner,loser\n" + "\n".join(votes) + "\n", encoding="utf-8")
    runs, qrels = str(folder / "runs.tsv"), str(folder / "labels.qrels")
    return {
        "podium fuse": ["fuse", runs, "-o", str(folder / "fused.run")],
        "podium fit -m fused": [
            *("fit", runs, "--qrels", qrels, "-m", "fused", "-o", str(folder / "model.podium"))
        ],
        "podium leaderboard": ["leaderboard", str(folder / "votes.csv")],
    }


def run_command(words: list[str]) -> None:
    """Run a podium command in this process, without its output."""
    from podium.cli import main

    sys.argv = ["podium", *words]
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with quiet[0], quiet[1], contextlib.suppress(SystemExit):
        main()


def print_walks(root: Path) -> None:
    """Print how many functions and files each command enters, what happens at import time left out."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in write_inputs(Path(folder)).items():
            # the first run imports and registers; the second one is the walk
            run_command(words)
            recorder = CallRecorder(root)
            sys.setprofile(recorder)
            try:
                run_command([*words, "--overwrite"] if "-o" in words else words)
            finally:
                sys.setprofile(None)
            print(f"{name:34}{len(recorder.functions)} functions in {len(recorder.files)} files", end="")
            print(f"; {len(recorder.mutual_pairs)} pairs of files that call each other")
            for a, b in recorder.mutual_pairs:
                print(f"    {a} <-> {b}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1] / "src" / "podium")
    parser.add_argument("--walks", action="store_true")
    parser.add_argument("--list", choices=["one-word", "participles", "classes", "once"])
    options = parser.parse_args()
    tree = read_tree(options.root)
    if options.list:
        print("\n".join(list_names(tree, options.list)))
        return
    print_figures(tree)
    if options.walks:
        print_walks(options.root)


if __name__ == "__main__":
    main()
