from __future__ import annotations

import pytest

from interlock.constraints.validator import is_valid

KNOWN = {"http://example.com/zip#": '{"type": "string", "maxLength": 3}'}


@pytest.mark.parametrize(
    ("schema", "document", "valid"),
    [
        ('{"type": "integer"}', "1", True),
        ('{"type": "integer"}', '"1"', False),
        ('{"type": "integer"}', '{"cut": ', False),
        ('{"type": "string", "nullable": true}', "null", True),
        ('{"type": "string", "pattern": "(?<=x)y"}', '"xy"', True),
        ('{"type": "string", "pattern": "\\\\p{L}"}', '"a"', None),
        ('{"$ref": "http://example.com/zip"}', '"123"', True),
        ('{"$ref": "http://example.com/zip"}', '"1234"', False),
        ('{"$ref": "http://example.com/unknown"}', '"1234"', None),
    ],
)
def test_a_validator_says_yes_no_or_that_it_cannot_tell(schema: str, document: str, valid: bool | None) -> None:
    assert is_valid(schema, document, KNOWN) is valid
