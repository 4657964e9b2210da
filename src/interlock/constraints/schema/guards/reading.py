"""Follow a document in its notation."""

from __future__ import annotations

from interlock.constraints.schema.guards import key_steps
from interlock.constraints.schema.guards.argument_scans import BareKeyScan, NestedTagScan, PythonScan, TagScan
from interlock.constraints.schema.guards.notation import (
    BareKeys,
    Json,
    NestedTags,
    Notation,
    Python,
    Tags,
    has_brackets,
)
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE, GuardPlan
from interlock.constraints.schema.guards.scan import Scan, ScanError, State

_SPACE = b" \t\n\r"
_IN_STRING = ("string", "key string")


def start(notation: Notation) -> State:
    """Before a document."""
    return State("value" if has_brackets(notation) else "start", notation=notation)


def feed(plan: GuardPlan, state: State, data: bytes) -> State:
    """The state after ``data``. Raises ``ScanError``, ``RepetitionError`` among them."""
    state, taken = feed_some(plan, state, data)
    while taken < len(data):
        if state.mode == "end":
            if data[taken:].strip(_SPACE):
                raise ScanError
            return state
        state, more = feed_some(plan, state, data[taken:])
        taken += more
    return state


def feed_some(plan: GuardPlan, state: State, data: bytes) -> tuple[State, int]:
    """The state after the first bytes of ``data``, and their number: all of them, but no more than the document
    has, and one by one where it may have ended (``State.may_end``). Raises as ``feed`` does."""
    if isinstance(state.notation, Json):
        if state.mode in _IN_STRING and b'"' not in data and b"\\" not in data:
            return _longer(state, data), len(data)
        if plan is EVERY_KEY_ONCE and state.frames and data:
            following = key_steps.after(state, data)
            if following is not None:
                return following, len(data)
    scan = _scan(plan, state, data)
    scan.run()
    return scan.state()


def _longer(state: State, data: bytes) -> State:
    """The open string of JSON goes on. The same object where nothing in it matters."""
    if state.mode == "string" and not state.is_guarded:
        return state
    return State(state.mode, state.frames, state.text + data, state.notation, state.bans)


def _scan(plan: GuardPlan, state: State, data: bytes) -> Scan:
    match state.notation:
        case Json():
            return Scan(plan, state, data)
        case BareKeys() as keys:
            return BareKeyScan(plan, state, data, keys)
        case Python() as python:
            return PythonScan(plan, state, data, python)
        case Tags() as tags:
            return TagScan(plan, state, data, tags)
        case NestedTags() as nested:
            return NestedTagScan(plan, state, data, nested)
