"""Options and types that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

FILE: Final = click.Path(dir_okay=False, path_type=Path)
EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)

THREADS: Final = click.option(
    "--threads", default=0, type=click.IntRange(0), help="CPU threads of the model; 0: physical cores."
)
API_KEY: Final = click.option(
    "--api-key", default="", envvar="INTERLOCK_API_KEY", help="Key of the server [env: INTERLOCK_API_KEY]."
)
MAX_TOKENS_HELP: Final = "Longest answer, thinking included."
