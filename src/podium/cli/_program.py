"""The click group of all verbs: it finds them, runs one, and turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import pkgutil
import warnings
from typing import Any

import click

from podium.cli._options import spell_option
from podium.cli._progress import show_progress_lines
from podium.core.errors import PodiumError, PodiumWarning
from podium.core.params import suggest_names
from podium.core.version import __version__

SHARED = frozenset({"input", "output"})  # modules that are not verbs


class Verbs(click.Group):
    """The commands of the modules in this package; each module defines one, called `verb`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs."""
        modules = (m.name for m in pkgutil.iter_modules([os.path.dirname(__file__)]))
        return sorted(name for name in modules if not name.startswith("_") and name not in SHARED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"podium.cli.{cmd_name}").verb
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with the first line of their modules, which need not be imported for that."""
        rows = []
        for name in self.list_commands(ctx):
            first_line = (pkgutil.get_data("podium.cli", f"{name}.py") or b"").decode().partition("\n")[0]
            rows.append((name, first_line.partition(": ")[2].strip('"')))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve the command as click does; suggest similar names for an unknown verb."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            ctx.fail(f"no command {args[0]!r}; {suggest_names(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb. A PodiumError becomes one line and exit code 2; anything else is reported as a bug."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", PodiumWarning)
            warnings.showwarning = _show_warning
            try:
                with show_progress_lines(lambda: ctx.invoked_subcommand):
                    return super().invoke(ctx)
            except PodiumError as error:
                raise _Failure(error.format_message(spell_option), 2) from None
            except KeyboardInterrupt:
                ctx.exit(130)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except OSError as error:
                name = f"{error.filename}: " if error.filename else ""
                raise _Failure(f"{name}{error.strerror or error}", 2) from None
            except MemoryError:
                raise _Failure(
                    "not enough memory for this input; split it by query and process the parts separately", 2
                ) from None
            except Exception as error:
                if os.environ.get("PODIUM_DEBUG"):
                    raise
                text = f"this is a bug in Podium ({type(error).__name__}: {error})"
                raise _Failure(f"{text}; set PODIUM_DEBUG=1 for the traceback", 70) from None


class _Failure(click.ClickException):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        click.echo(f"podium: {self.format_message()}", err=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, PodiumWarning):
        text = message.format_message(spell_option) if isinstance(message, PodiumWarning) else str(message)
        click.echo(f"podium: warning: {text}", err=True)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="podium")
def program() -> None:
    """Many rankings in, one consensus out.

    \b
    podium demo                                          see what it does, on generated data
    podium fuse bm25.run dense.run -o fused.run          fuse runs
    podium eval fused.run --qrels qrels.txt              evaluate a run
    podium compare *.run --qrels qrels.txt -m rrf -m combmnz
    podium tune *.run --qrels qrels.txt -o best.podium             best method and parameters, with a test
    podium tune *.run --qrels qrels.txt --for qdrant -o best.podium   in the formula of a search engine
    podium deploy best.podium --to qdrant -o fusion.http           its configuration, checked on your runs
    podium report *.run --qrels qrels.txt -o report.html           one HTML file to share
    podium fit *.run --qrels qrels.txt -m svd -o model.podium      learn which experts to trust
    podium apply model.podium new/*.run -o fused.run
    """
