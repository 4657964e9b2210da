"""Tables and plots from the JSON documents that the comparisons write with ``--out``.

    python benchmarks/compare/report.py results/*.json > tables.md
    python benchmarks/compare/report.py results/*.json --plot docs/compare.svg

Verdicts are shares of all answers of all rounds, times are medians of the rounds. A peer may have two documents: verdicts
of all requests, and speeds of a sample of them at several concurrencies. A ratio of speeds is given only where
both compute in the same precision. The plot needs the extra ``plots``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERDICTS = ("valid", "wrong", "refused", "cut", "failed")
_HEADER = (
    "| who | computes in | at once | tokens/s | over peer | first token ms | schemas: valid / wrong / refused / cut / failed % "
    "| calls: the same |\n|---|---|---|---|---|---|---|---|"
)
_COLOURS = {"valid": "#2a9d8f", "wrong": "#d62828", "refused": "#8d99ae", "cut": "#e9c46a", "failed": "#000000"}


@dataclass(frozen=True)
class Row:
    """One contestant at one concurrency. over_peer: speed over the peer's, ``None`` for the peer itself and another
    precision. shares: of each kind of request, in per cent, by verdict."""

    who: str
    precision: str
    concurrency: int
    tokens_per_s: float
    over_peer: float | None
    first_token_ms: float
    shares: dict[str, dict[str, float]]


def rows(document: dict[str, Any]) -> Iterator[Row]:
    """By contestant, then by concurrency."""
    precision, peer = document["precision"], document["peer"]
    for who in precision:
        for concurrency, found in document["by_concurrency"].items():
            own = [round_[who] for round_ in found["rounds"]]
            is_comparable = precision[who] == precision[peer]
            yield Row(
                who=who,
                precision=precision[who],
                concurrency=int(concurrency),
                tokens_per_s=statistics.median(one["tokens_per_s"] for one in own),
                over_peer=found["tokens_per_s_over_peer"].get(who) if is_comparable else None,
                first_token_ms=statistics.median(one["first_token_ms"] or 0.0 for one in own),
                shares={kind: _shares([one["share"][kind] for one in own]) for kind in ("schemas", "calls")},
            )


def _shares(counts: Sequence[dict[str, int]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return {verdict: 100 * total[verdict] / max(1, total.total()) for verdict in VERDICTS}


def table(document: dict[str, Any]) -> str:
    """In Markdown, with the command and the machine above it."""
    machine = document["machine"]
    load = (
        f"`{document['command']}`: {document['requests']} requests a round of at most {document['tokens']} tokens, "
        f"{document['threads']} threads, {machine['cores']} cores of {machine['cpu']}, load at the end {machine['load']}."
    )
    lines = [load, "", _HEADER]
    for row in rows(document):
        ratio = "" if row.over_peer is None else f"{row.over_peer:.2f}"
        shares = [" / ".join(f"{row.shares[kind][verdict]:.0f}" for verdict in VERDICTS) for kind in row.shares]
        cells = (row.who, row.precision, row.concurrency, row.tokens_per_s, ratio, row.first_token_ms, *shares)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def plot(documents: Sequence[dict[str, Any]], path: Path) -> None:
    """For each peer a line of two panels: verdicts, of its document with the most requests, and tokens per second, of the
    one with the most concurrencies."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "compare", "font.size": 8})
    import matplotlib.pyplot as plt

    of_peers: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        of_peers.setdefault(document["peer"], []).append(document)
    figure, axes = plt.subplots(
        len(of_peers), 2, figsize=(8, 2.3 * len(of_peers)), layout="constrained", squeeze=False
    )
    for (verdicts, speed), group in zip(axes, of_peers.values(), strict=True):
        _draw_verdicts(verdicts, list(rows(max(group, key=lambda one: one["requests"]))))
        document = max(group, key=lambda one: len(one["by_concurrency"]))
        found = list(rows(document))
        for who in document["precision"]:
            own = [row for row in found if row.who == who]
            label = f"{who} ({own[0].precision})"
            speed.plot([row.concurrency for row in own], [row.tokens_per_s for row in own], "o-", label=label)
        speed.set(xlabel="requests at once", ylabel="tokens/s", ylim=(0, None))
        speed.legend(fontsize=6)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _draw_verdicts(axis: Any, found: Sequence[Row]) -> None:
    """Stacked bars; what a contestant answers hardly depends on the concurrency, so the highest one is shown."""
    most = max(row.concurrency for row in found)
    bars = {
        f"{row.who}: {kind}": row.shares[kind]
        for row in found
        if row.concurrency == most
        for kind in row.shares
    }
    left = [0.0] * len(bars)
    for verdict in VERDICTS:
        widths = [shares[verdict] for shares in bars.values()]
        axis.barh(list(bars), widths, left=left, color=_COLOURS[verdict], label=verdict)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axis.invert_yaxis()
    axis.set(xlabel="% of answers", xlim=(0, 100))
    axis.legend(fontsize=6, ncols=len(VERDICTS), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--plot", type=Path, default=None, help="an SVG file")
    options = parser.parse_args()
    documents = [json.loads(path.read_text()) for path in options.documents]
    for document in documents:
        print(f"### Interlock beside {document['peer']}\n\n{table(document)}\n")
    if options.plot is not None:
        plot(documents, options.plot)


if __name__ == "__main__":
    main()
