"""Command-line spelling of the options that messages suggest."""

from __future__ import annotations

from podium.core.errors import Option, join_words

__all__ = ["spell_option"]


def spell_option(option: Option) -> str:
    """Spell a library option as a command-line argument.

    >>> tuple(map(spell_option, (Option("duplicates", "first", "sum"), Option("missing", ()), Option("columns"))))
    ('-O duplicates=first or -O duplicates=sum', '-O missing=', '-O columns=')
    >>> tuple(map(spell_option, (Option("format", "csv"), Option("format"), Option("format", of="writing"))))
    ('-f csv', '-f NAME', '--to NAME')
    >>> spell_option(Option("overwrite", True, of="writing")), spell_option(Option("scorer", "lambdarank", of="method"))
    ('--overwrite', '-p scorer=lambdarank')
    """
    name, values = option.name, ["" if v == () else str(v) for v in option.values]
    if name == "overwrite":
        return "--overwrite"
    if name == "unseen":
        return f"--unseen {join_words(values, 'or')} (of podium apply)"
    if name == "format":
        flag = "--to" if option.of == "writing" else "-f"
        return join_words([f"{flag} {value}" for value in values or ["NAME"]], "or")
    if name == "unlisted":
        return join_words([f"--unlisted {value}" for value in values or ["NAME"]], "or")
    flag = "-p" if option.of == "method" else "-O"
    return join_words([f"{flag} {name}={value}" for value in values or [""]], "or")
