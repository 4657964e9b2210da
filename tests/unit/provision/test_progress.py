from __future__ import annotations

import io

from rich.console import Console

from interlock.provision.progress import NoProgress, TerminalProgress


def test_a_bar_shows_its_label_and_goes_when_its_step_is_over() -> None:
    screen = io.StringIO()
    with TerminalProgress(Console(file=screen, force_terminal=True, width=100)) as progress:
        handle = progress.start("downloading", 100)
        handle.advance(50)
        progress._bars.refresh()
        assert "downloading" in screen.getvalue()
        assert "50/100 bytes" in screen.getvalue()
        handle.close()
        handle.close()
        handle.advance(1)
        assert not progress._bars.tasks


def test_no_progress_takes_everything() -> None:
    handle = NoProgress().start("anything", None)
    handle.advance(1)
    handle.close()
