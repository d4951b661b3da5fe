"""{podium-notebook} NAME: the notebook docs/gallery/NAME.py, run while the documentation is built, with its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from notebook_cells import CellOutput, run_cells


class Notebook(SphinxDirective):
    """Cells and outputs in order; the title of the notebook is that of the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        path = Path(self.env.srcdir) / "gallery" / f"{self.arguments[0]}.py"
        self.env.note_dependency(str(path))
        text = "\n".join(self._write_page(path))
        return list(self.parse_text_to_nodes(text, allow_section_headings=True))

    def _write_page(self, path: Path) -> Iterator[str]:
        for number, (cell, output) in enumerate(run_cells(path)):
            if cell.kind == "markdown":
                yield cell.text.partition("\n")[2] if number == 0 else cell.text
            else:
                yield f"\n```python\n{cell.text}\n```\n"
                yield from _write_output(output)
            yield ""


def _write_output(output: CellOutput) -> Iterator[str]:
    if output.printed:
        yield f"```text\n{output.printed.rstrip()}\n```\n"
    if hasattr(output.value, "_repr_html_"):
        yield f'```{{raw}} html\n<div class="output">{output.value._repr_html_()}</div>\n```\n'
    elif output.value is not None:
        yield f"```text\n{output.value!r}\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("podium-notebook", Notebook)
    return {"parallel_read_safe": False}
