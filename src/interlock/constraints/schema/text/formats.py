"""``format``: names whose strings are a regular language, as ECMA patterns of the whole string.

Formats that are missing here (``idn-*``, unknown names) are annotations, and reported as such.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from interlock.constraints.schema.text.ecma import search
from interlock.constraints.schema.text.nodes import Lang

_LEAP = "(0[48]|[2468][048]|[13579][26])"
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DATE = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|([0-9]{{2}}{_LEAP}|{_LEAP}00)-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = f"({_CLOCK}:[0-5][0-9](\\.[0-9]+)?([Zz]|[+-]{_CLOCK})|23:59:60(\\.[0-9]+)?([Zz]|[+-]00:00))"

_CLOCK_PART = "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
_DAYS = "([0-9]+D|[0-9]+M([0-9]+D)?|[0-9]+Y([0-9]+M([0-9]+D)?)?)"
_DURATION = f"P([0-9]+W|{_DAYS}({_CLOCK_PART})?|{_CLOCK_PART})"

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_X, _Y = "[A-Za-z0-9]", "[A-Za-z0-9-]"
# no label has hyphens in third and fourth place: that is where punycode starts, which no regex can check
_PLAIN_LABEL = f"({_X}|{_X}{_X}|{_X}{_Y}{_X}|{_X}{_Y}{_Y}{_X}|{_X}{_Y}({_X}{_Y}|-{_X}){_Y}{{0,58}}{_X})"
_HOSTNAME = f"(?=[A-Za-z0-9.-]{{1,253}}$){_PLAIN_LABEL}(\\.{_PLAIN_LABEL})*"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"{_OCTET}(\\.{_OCTET}){{3}}"


def _ipv6() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = f"({group}:{group}|{_IPV4})"
    forms = [f"({group}:){{6}}{last}"]
    for before in range(8):
        head = f"({group}(:{group}){{0,{before - 1}}})?" if before else ""
        after = 5 - before  # groups that may follow '::' in front of the last 32 bits
        tail = f"({group}:){{{after}}}{last}" if after >= 0 else (group if after == -1 else "")
        forms.append(f"{head}::{tail}")
    return f"({'|'.join(forms)})"


_IPV6 = _ipv6()
_ATEXT = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = '"([ !#-\\[\\]-~]|\\\\[ -~])*"'
_EMAIL = f"({_ATEXT}(\\.{_ATEXT})*|{_QUOTED})@({_LABEL}(\\.{_LABEL})*|\\[({_IPV4}|IPv6:{_IPV6})\\])"
_UUID = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"

_UCS = (
    "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
    "\\u{10000}-\\u{1fffd}\\u{20000}-\\u{2fffd}\\u{30000}-\\u{3fffd}\\u{40000}-\\u{4fffd}\\u{50000}-\\u{5fffd}"
    "\\u{60000}-\\u{6fffd}\\u{70000}-\\u{7fffd}\\u{80000}-\\u{8fffd}\\u{90000}-\\u{9fffd}\\u{a0000}-\\u{afffd}"
    "\\u{b0000}-\\u{bfffd}\\u{c0000}-\\u{cfffd}\\u{d0000}-\\u{dfffd}\\u{e1000}-\\u{efffd}"
)
_PRIVATE = "\\ue000-\\uf8ff\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}"


def _uri(extra: str, private: str, *, relative: bool) -> str:
    """RFC 3986 (3987 with ``extra`` characters)."""
    escaped = "%[0-9A-Fa-f]{2}"
    plain = f"A-Za-z0-9._~!$&'()*+,;={extra}-"
    pchar = f"([:@{plain}]|{escaped})"
    authority = f"(([:{plain}]|{escaped})*@)?(\\[({_IPV6}|[vV][0-9A-Fa-f]+\\.[:{plain}]+)\\]|([{plain}]|{escaped})*)(:[0-9]*)?"
    rooted = f"/({pchar}+(/{pchar}*)*)?"
    hier = f"(//{authority}(/{pchar}*)*|{rooted}|{pchar}+(/{pchar}*)*|)"
    tail = f"(\\?([/?:@{plain}{private}]|{escaped})*)?(#([/?:@{plain}]|{escaped})*)?"
    absolute = f"[A-Za-z][A-Za-z0-9+.-]*:{hier}{tail}"
    if not relative:
        return absolute
    no_scheme = f"(//{authority}(/{pchar}*)*|{rooted}|([@{plain}]|{escaped})+(/{pchar}*)*|){tail}"
    return f"({absolute}|{no_scheme})"


_VARNAME = "([A-Za-z0-9_]|%[0-9A-Fa-f]{2})(\\.?([A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARSPEC = f"{_VARNAME}(:[1-9][0-9]{{0,3}}|\\*)?"
_URI_TEMPLATE = f"([!#$&-;=?-\\[\\]_a-z~{_UCS}{_PRIVATE}]|%[0-9A-Fa-f]{{2}}|\\{{[+#./;?&=,!@|]?{_VARSPEC}(,{_VARSPEC})*\\}})*"
_POINTER = "(/([^~/]|~[01])*)*".replace("[^~/]", "[\\0-.0-}\\x7f-\\u{10ffff}]")


def _regex(depth: int) -> str:
    """Regular expressions that every dialect reads alike, with groups nested up to ``depth``."""
    ranges = "|".join(
        f"{low}-[{low}-{last}]"
        for first, last in (("a", "z"), ("A", "Z"), ("0", "9"))
        for low in _between(first, last)
    )
    item = f"({ranges}|[^\\\\\\]\\[^&~|-]|\\\\[dDwWsSnrt\\\\\\]\\[^./-])"
    char_class = f"\\[\\^?{item}+-?\\]"
    atom = f"([^\\\\^$.*+?()\\[\\]{{}}|]|\\.|\\\\[dDwWsSnrt\\\\^$.*+?()\\[\\]{{}}|/]|{char_class})"
    pairs = "|".join(f"{low},[{low}-9]" for low in range(1, 10))
    bounds = f"\\{{([0-9]{{1,3}},?|0,[0-9]{{1,3}}|{pairs}|[1-9],[1-9][0-9]{{1,2}})\\}}"
    quantifier = f"(([*+?]|{bounds})\\??)?"
    expression = f"({atom}{quantifier}|[\\^$|]|\\\\[bB])*"
    for _ in range(depth):
        group = f"\\((\\?:)?{expression}\\){quantifier}|\\(\\?[=!]{expression}\\)"
        expression = f"({atom}{quantifier}|[\\^$|]|\\\\[bB]|{group})*"
    return expression


def _between(first: str, last: str) -> str:
    return "".join(chr(code) for code in range(ord(first), ord(last) + 1))


APPROXIMATE: Final = frozenset({"regex"})  # only a part of the format's strings: their complement is unknown

PATTERNS: Final[dict[str, str]] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": _UUID,
    "uri": _uri("", "", relative=False),
    "uri-reference": _uri("", "", relative=True),
    "iri": _uri(_UCS, _PRIVATE, relative=False),
    "iri-reference": _uri(_UCS, _PRIVATE, relative=True),
    "uri-template": _URI_TEMPLATE,
    "json-pointer": _POINTER,
    "regex": _regex(2),
    "relative-json-pointer": f"(0|[1-9][0-9]*)(#|{_POINTER})",
}


@lru_cache(maxsize=64)
def language(name: str) -> Lang | None:
    """The strings of a format, or ``None`` if the format is an annotation."""
    pattern = PATTERNS.get(name)
    return None if pattern is None else search(f"^(?:{pattern})$")
