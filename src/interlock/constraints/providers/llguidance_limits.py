"""What llguidance may spend on one grammar."""

from __future__ import annotations

import llguidance

# a lexer state takes 1-2 kB, so the first bounds one grammar to about 100 MB. The second bounds one mask to about
# 50 ms: patterns that count words take more than llguidance's own 200,000 on their first mask, and a lexer out
# of fuel is of no use to any copy of the matcher. The third is for the states of large terminals, made while compiling
# (about 0.2 s): unions of multiples beside each other take up to four times llguidance's own. The other
# limits are llguidance's own
_MAX_LEXER_STATES = 50_000
_STEP_LEXER_FUEL = 1_000_000
_INITIAL_LEXER_FUEL = 4_000_000

MAX_FORCED_BYTES = 64 * 1024
"""Of text that a grammar forces at its start: 2 us a byte for the first mask, and each sequence copies what was found."""


def parser_limits() -> llguidance.LLParserLimits:
    """What one grammar may cost to compile and to step."""
    return llguidance.LLParserLimits(
        max_lexer_states=_MAX_LEXER_STATES,
        initial_lexer_fuel=_INITIAL_LEXER_FUEL,
        step_lexer_fuel=_STEP_LEXER_FUEL,
        verbose_errors=False,
    )
