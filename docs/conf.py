"""How Sphinx builds the documentation: `make docs`. Nothing is fetched from the net, then or when it is read."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import podium

project = "Podium"
author = "The Podium developers"
copyright = author
release = version = podium.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "signatures", "podium_docs", "notebook_pages"]
exclude_patterns = ["_ext"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_type_comments = False
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
# names of types that say more than what they stand for
_NAMES = (
    "Answer B1 Candidate Column Differences F8 FrameBackend I4 I8 Id MetricSpec Path Progress Scores Times"
)
autodoc_type_aliases = {name: name for name in [*_NAMES.split(), "Weights"]}
default_role = "code"  # docstrings mark code with single quotes of this kind
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Podium {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["podium.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
