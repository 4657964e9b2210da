"""What becomes of each keyword of a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["grammar", "guard", "structure", "annotation", "unenforced", "refused"]


class Finding(NamedTuple):
    """status: who holds the keyword; ``unenforced`` is what a relaxed schema leaves out. reason: why nobody does."""

    pointer: str
    keyword: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """findings: one for each keyword of each schema that the root reaches, in order."""

    findings: tuple[Finding, ...] = ()

    def guarded(self) -> SchemaReport:
        """The report where a guard stands beside the grammar."""
        return SchemaReport(
            tuple(
                finding._replace(status="guard") if finding.keyword == "uniqueItems" else finding
                for finding in self.findings
            )
        )

    def notes(self) -> tuple[str, ...]:
        """What a caller should see: keywords that look like constraints and are not."""
        return tuple(
            f"{finding.pointer}: {finding.reason}"
            for finding in self.findings
            if finding.status == "annotation" and finding.reason
        )
