"""Lark grammars as one pattern: what it takes is what the grammar derives."""

from __future__ import annotations

import pytest

from interlock.constraints.lark.regular import MAX_SOURCE_CHARS, pattern
from interlock.constraints.lark.syntax import LarkError
from interlock.constraints.schema.text import ecma
from interlock.constraints.schema.text.lang import Matcher

PATCH = r"""
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | update_hunk      // two of them
add_hunk: "*** Add File: " filename LF add_line+
update_hunk: "*** Update File: " filename LF change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"""
SQL = r"""
start: "SELECT"i columns "FROM"i CNAME where? ";"
?columns: "*" | CNAME ("," CNAME)*
where: "WHERE"i CNAME OP value
OP: "=" | "<=" | ">="
!value.2: INT | "'" /[^']/ ~ 0..3 "'"
%import common (CNAME, INT)
%import common.WS_INLINE -> SPACE
%ignore SPACE
"""
LIST = "start: items\nitems: item | items SEP item\nitem: /[0-9]/ ~ 2\nSEP: /, ?/"
TWO_RULES = 'start: a\na: "x" b | "."\nb: "y" a | "z" b | "!"'


def accepts(source: str, text: str) -> bool:
    return Matcher(ecma.search(f"^(?:{pattern(source)})$")).accepts(text)


@pytest.mark.parametrize(
    ("source", "text", "derived"),
    [
        (PATCH, "*** Begin Patch\n*** Add File: a.py\n+x\n+\n*** End Patch", True),
        (PATCH, "*** Begin Patch\n*** Update File: a\n@@ f\n-x\n+y\n*** End of File\n*** End Patch\n", True),
        (PATCH, "*** Begin Patch\n*** Add File: a.py\nx\n*** End Patch", False),
        (PATCH, "*** Begin Patch\n*** End Patch", False),
        (SQL, "SELECT a , b FROM t;", True),
        (SQL, "select*from t WHERE n = 'ab' ; ", True),
        (SQL, "select * from t where n = 'abcd';", False),
        (SQL, "select from t;", False),
        (LIST, "12", True),
        (LIST, "12, 34,56", True),
        (LIST, "12,", False),
        (TWO_RULES, "xyxzz!", True),
        (TWO_RULES, "xy.", True),
        (TWO_RULES, "xyz!", False),
        ('start: ["-"] "a".."f" (/b/ | "c"){2,}', "-ebc", True),
        ('start: ["-"] "a".."f" (/b/ | "c"){2,}', "eb", False),
        ('start: "a"? | "b" start', "bb", True),
        ("start: /./s /[^\\n]/", "\nx", True),
        ("start: /./", "\n", False),
        ("start: /./", "\u2028", True),
        ("start: /[a-c]x/i", "BX", True),
        ("start: /[^a-c]/i", "B", False),
        (r'start: "\u00e9\x41\n\""', 'éA\n"', True),
        ('start: "a.b"', "axb", False),
        ('start: "straße"i', "STRAßE", True),
        ("start: X\nX: Y Y\nY: /[ab]/\n%ignore /-/", "-ab-", True),
        ("start: X\nX: Y Y\nY: /[ab]/\n%ignore /-/", "a-b", False),
    ],
)
def test_the_pattern_takes_what_the_grammar_derives(source: str, text: str, derived: bool) -> None:
    assert accepts(source, text) is derived


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('start: e\ne: "(" e ")" | "x"', "line 2: the rule 'e' leads back to itself in the middle"),
        ('start: e\ne: e "+" e | "x"', "line 2: the rule 'e' leads back to itself in the middle"),
        ('start: a\na: "x" a', "line 2: the rule 'a' never ends"),
        ("start: A\nA: B\nB: A", "refers to itself"),
        ("start: A\nA: b\nb: /x/", "line 2: a terminal cannot refer to the rule 'b'"),
        ("rule: /x/", "there is no rule `start`"),
        ("start: x", "line 1: 'x' is not defined"),
        ("start: /x/\nstart: /y/", "line 2: 'start' is defined twice"),
        ("start: (/x/", "`)` expected"),
        ("start: /x/ ~ 3..2", "3 to 2 times is not possible"),
        ("start: /(/", "line 1: /(/: unterminated group"),
        ("start: /a(?=b)/", "(?= is not supported in a terminal"),
        ("start: /^a/", "^ is not supported in a terminal"),
        ("start: /a/x", "the flag 'x' is not supported"),
        ("start: /[A-z]/i /[@-c]/i", "in the other case"),
        ('start: "b".."a"', "a range goes from one character to a later one"),
        (r'start: "\ud800"', "is no character"),
        ("start: <|im_end|>", "special tokens"),
        ("start: @other", "references to other grammars"),
        ("start[lazy]: /x/", "attributes and templates are not supported"),
        ("start: pair{a, b}", "a number expected"),
        ("%import python.NAME\nstart: NAME", "only `common` can be imported"),
        ("%import common.BANANA\nstart: BANANA", "`common` has no 'BANANA'"),
        ("%declare X\nstart: X", "%declare is not supported"),
        ("start: `x`", "line 1: unexpected '`'"),
        ("start:" + "(" * 70, "nested too deeply"),
        ("start: /x/" + " " * MAX_SOURCE_CHARS, "longer than"),
        (
            "start: r0\n" + "".join(f"r{i}: r{i + 1} r{i + 1}\n" for i in range(30)) + "r30: /x/",
            "longer than",
        ),
        ("start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(3000)) + "r3000: /x/", "nested too deeply"),
    ],
)
def test_what_is_wrong_or_not_regular_is_told_with_its_line(source: str, told: str) -> None:
    with pytest.raises(LarkError) as caught:
        pattern(source)
    assert told in str(caught.value)
