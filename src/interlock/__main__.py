"""``python -m interlock``."""

from interlock.cli.main import main

main()
