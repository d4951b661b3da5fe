"""How many inputs each engine ranked, below the results."""

from __future__ import annotations

from engines.order_agreement import COUNTS


def pytest_terminal_summary(terminalreporter):
    """Print a line per engine."""
    for engine, counts in COUNTS.items():
        terminalreporter.write_line(
            f"{engine}: {counts['inputs']:,} random inputs, {counts['exact']:,} of them also compared with the method"
        )
