"""Regexes of the decimal texts that lie on one side of a bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

# Any number with one of these exponents is a double other than zero.
_MAX_EXPONENT = 307
_MIN_EXPONENT = -323
# No reader makes infinity of this. What lies between 1.797 and the last few hundred doubles is left out: all sixteen digits of the largest
# one would cost each grammar with a number 0.3 ms.
_HUGE = "1(\\.([0-6][0-9]*|7([0-8][0-9]*|9([0-6][0-9]*|769313486231[0-5][0-9])?)?))?[eE]\\+?308"
# No reader makes zero of this.
_TINY = "[3-9](\\.[0-9]+)?[eE]-324"
# Below, doubles lie so far apart that a number may be rounded onto a bound near it.
_LEAST_EXACT_EXPONENT = -300
_NATURAL = "(0|[1-9][0-9]*)"
_MANTISSA = "[1-9](\\.[0-9]+)?"


def above(bound: Fraction, is_open: bool, *, plain: bool) -> str:
    """Texts of numbers ``>= bound`` (``>`` if open). ``plain``: without exponents."""
    if bound > 0:
        return _at_least(bound, is_open, plain)
    positive = f"{_NATURAL}(\\.[0-9]+)?" if plain else f"{_NATURAL}(\\.[0-9]+)?|{_exponents(None, None)}"
    if bound == 0:
        if is_open:
            return _at_least(bound, True, plain)
        return f"{positive}|-0(\\.0+)?"
    return f"{positive}|-({_at_most(-bound, is_open, plain)})"


def below(bound: Fraction, is_open: bool, *, plain: bool) -> str:
    """Texts of numbers ``<= bound`` (``<`` if open)."""
    if bound > 0:
        negative = f"{_NATURAL}(\\.[0-9]+)?" if plain else f"{_NATURAL}(\\.[0-9]+)?|{_exponents(None, None)}"
        return f"-({negative})|{_at_most(bound, is_open, plain)}"
    if bound == 0:
        zero = "" if is_open else "|-?0(\\.0+)?"
        return f"-({_at_least(bound, True, plain)}){zero}"
    return f"-({_at_least(-bound, is_open, plain)})"


def _at_least(bound: Fraction, is_open: bool, plain: bool) -> str:
    """Unsigned texts ``>= bound``; ``bound >= 0``."""
    whole, fraction = _parts(bound)
    forms = [f"[1-9][0-9]{{{len(whole)},}}(\\.[0-9]+)?"]
    if whole == "0":
        forms = ["[1-9][0-9]*(\\.[0-9]+)?"]
    else:
        forms += [f"{text}(\\.[0-9]+)?" for text in _greater(whole)]
    forms.append(f"{whole}{_fraction_at_least(fraction, is_open)}")
    if not plain:
        forms.append(_exponents(bound, None, is_open) if bound else _exponents(None, None))
    return "|".join(forms)


def _at_most(bound: Fraction, is_open: bool, plain: bool) -> str:
    """Unsigned texts ``<= bound``; ``bound > 0``."""
    whole, fraction = _parts(bound)
    forms = [f"{text}(\\.[0-9]+)?" for text in _smaller(whole)]
    if len(whole) > 1:
        forms.append("0(\\.[0-9]+)?")
        if len(whole) > 2:
            forms.append(f"[1-9][0-9]{{0,{len(whole) - 2}}}(\\.[0-9]+)?")
        else:
            forms.append("[1-9](\\.[0-9]+)?")
    ending = _fraction_at_most(fraction, is_open)
    if ending is not None:
        forms.append(f"{whole}{ending}")
    if not plain:
        forms.append(_exponents(None, bound, is_open))
    return "|".join(form for form in forms if form)


def _parts(bound: Fraction) -> tuple[str, str]:
    """Digits before and after the point, no trailing zeros."""
    whole, rest = divmod(bound.numerator, bound.denominator)
    digits = []
    while rest:
        digit, rest = divmod(rest * 10, bound.denominator)
        digits.append(str(digit))
    return str(whole), "".join(digits)


def _greater(whole: str) -> list[str]:
    """Numbers of as many digits, greater than ``whole``."""
    out = []
    for index, digit in enumerate(whole):
        if digit < "9":
            out.append(f"{whole[:index]}{_span(int(digit) + 1, 9)}{_digits(len(whole) - index - 1)}")
    return out


def _smaller(whole: str) -> list[str]:
    """Numbers of as many digits, smaller than ``whole``."""
    out = []
    for index, digit in enumerate(whole):
        least = 1 if index == 0 and len(whole) > 1 else 0
        if int(digit) > least:
            out.append(f"{whole[:index]}{_span(least, int(digit) - 1)}{_digits(len(whole) - index - 1)}")
    return out


def _fraction_at_least(fraction: str, is_open: bool) -> str:
    """Endings (with the point) of texts whose fraction is ``>= 0.fraction``."""
    if not fraction:
        return "\\.[0-9]*[1-9][0-9]*" if is_open else "(\\.[0-9]+)?"
    forms = [f"{fraction[:i]}{_span(int(d) + 1, 9)}[0-9]*" for i, d in enumerate(fraction) if d < "9"]
    forms.append(f"{fraction}[0-9]*[1-9][0-9]*" if is_open else f"{fraction}[0-9]*")
    return f"\\.({'|'.join(forms)})"


def _fraction_at_most(fraction: str, is_open: bool) -> str | None:
    """Endings of texts whose fraction is ``<= 0.fraction``; ``None`` if there are none."""
    if not fraction:
        return None if is_open else "(\\.0+)?"
    forms = []
    for index, digit in enumerate(fraction):
        if digit > "0":
            forms.append(f"{fraction[:index]}{_span(0, int(digit) - 1)}[0-9]*")
        if index:
            forms.append(fraction[:index])
    if not is_open:
        forms.append(f"{fraction}0*")
    return f"(\\.({'|'.join(forms)}))?"


def _exponents(low: Fraction | None, high: Fraction | None, is_open: bool = False) -> str:
    """Unsigned texts with an exponent, bounded on one side by a positive number."""
    bound = low if low is not None else high
    if bound is None:
        return f"{_MANTISSA}[eE]({_exponent_range(_MIN_EXPONENT, _MAX_EXPONENT)})|{_HUGE}|{_TINY}"
    order, lead, fraction = _scientific(bound)
    forms = []
    rest = (
        _exponent_range(order + 1, _MAX_EXPONENT)
        if low is not None
        else _exponent_range(_MIN_EXPONENT, order - 1)
    )
    if rest:
        forms.append(f"{_MANTISSA}[eE]({rest})")
    if low is not None and order < _MAX_EXPONENT + 1:
        forms.append(_HUGE)
    if high is not None and order >= _MIN_EXPONENT:
        forms.append(_TINY)
    here = _exponent_range(order, order)
    if here and _LEAST_EXACT_EXPONENT <= order <= _MAX_EXPONENT:
        mantissas = []
        if low is not None:
            if lead < 9:
                mantissas.append(f"{_span(lead + 1, 9)}(\\.[0-9]+)?")
            mantissas.append(f"{lead}{_fraction_at_least(fraction, is_open)}")
        else:
            if lead > 1:
                mantissas.append(f"{_span(1, lead - 1)}(\\.[0-9]+)?")
            ending = _fraction_at_most(fraction, is_open)
            if ending is not None:
                mantissas.append(f"{lead}{ending}")
        if mantissas:
            forms.append(f"({'|'.join(mantissas)})[eE]({here})")
    return "|".join(forms)


def _scientific(value: Fraction) -> tuple[int, int, str]:
    """Exponent, first digit and the digits behind it."""
    whole, fraction = _parts(value)
    digits = (whole + fraction).lstrip("0")
    order = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return order, int(digits[0]), digits[1:].rstrip("0")


def _exponent_range(low: int, high: int) -> str:
    low, high = max(low, _MIN_EXPONENT), min(high, _MAX_EXPONENT)
    forms = []
    if high >= 0 and low <= high:
        forms.append(f"\\+?0?({_naturals(max(low, 0), high)})")
    if low < 0 and low <= high:
        forms.append(f"-0?({_naturals(max(1, -high), -low)})")
    return "|".join(forms)


def _naturals(low: int, high: int) -> str:
    """Regex of the integers from ``low`` to ``high``, at most three digits."""
    forms: list[str] = []
    for size in (1, 2, 3):
        least, most = max(low, 10 ** (size - 1) if size > 1 else 0), min(high, 10**size - 1)
        if least <= most:
            forms += _same_size(str(least), str(most))
    return "|".join(forms)


def _same_size(low: str, high: str) -> list[str]:
    if low == high:
        return [low]
    if len(low) == 1:
        return [_span(int(low), int(high))]
    rest = len(low) - 1
    if low[0] == high[0]:
        return [low[0] + text for text in _same_size(low[1:], high[1:])]
    first, last = int(low[0]), int(high[0])
    out: list[str] = []
    if low[1:] != "0" * rest:
        out += [low[0] + text for text in _same_size(low[1:], "9" * rest)]
        first += 1
    tail: list[str] = []
    if high[1:] != "9" * rest:
        tail = [high[0] + text for text in _same_size("0" * rest, high[1:])]
        last -= 1
    if first <= last:
        out.append(f"{_span(first, last)}{_digits(rest)}")
    return out + tail


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"[{low}-{high}]"


def _digits(count: int) -> str:
    return "" if count == 0 else "[0-9]" if count == 1 else f"[0-9]{{{count}}}"


EXPONENT_FORM: Final = f"-?({_exponents(None, None)})"
