from __future__ import annotations

from interlock.constraints.schema import docs


def test_the_keyword_table_of_the_docs_is_current(root) -> None:
    page = (root / "docs" / "json-schema.md").read_text()
    assert docs.with_table(page) == page, "regenerate it with interlock.constraints.schema.docs.with_table"
