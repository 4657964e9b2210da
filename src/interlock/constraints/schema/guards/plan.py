"""Where the guarded arrays and objects of a grammar are: a small graph that follows the document."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

Nodes = frozenset[int]  # every node that the value at one place may be
Slots = tuple[tuple[int, tuple[str, ...]], ...]
"""Positions of an array of different items that must be filled and have few values: JSON texts of these."""


@dataclass(frozen=True, slots=True)
class Room:
    """What always leaves more values than there can be items, whatever was written before. keys: more undeclared keys may
    always come. spare: keys that may come as long as they have not, with very many values each. fresh: so many values
    has each item of the array, strings: so many of them are strings, text: also with any beginning, members: so many are
    objects. items: up to that number of items, one more leaves so many values. domain: instead of all that, the few strings
    that an item may be, in order, each as the bytes of its plainest spelling."""

    keys: bool = False
    spare: frozenset[str] = frozenset()
    fresh: bool = False
    items: int = 0
    strings: bool = False
    text: bool = False
    members: bool = False
    domain: tuple[bytes, ...] = ()

    def __and__(self, other: Room) -> Room:
        """Where it may be either."""
        return Room(
            self.keys and other.keys,
            self.spare & other.spare,
            self.fresh and other.fresh,
            min(self.items, other.items),
            self.strings and other.strings,
            self.text and other.text,
            self.members and other.members,
            self.domain if self.domain == other.domain else (),
        )


NO_ROOM: Final = Room()


@dataclass(frozen=True, slots=True)
class GuardNode:
    """One value of the grammar. unique: as an array, its items differ. distinct: as an object, no key comes twice, where
    keys are counted, or where a key that has begun may not become a new one. once: as an object, no key comes twice, where
    neither matters.
    prefix, rest, names, others: nodes of what is inside. kinds: its JSON types, as far as they decide how it is read.
    slots: see ``Slots``. inexact: items may run out in ways that these do not tell. arrays, objects: the room in them."""

    unique: bool = False
    distinct: bool = False
    once: bool = False
    prefix: tuple[Nodes, ...] = ()
    rest: Nodes = frozenset()
    names: tuple[tuple[str, Nodes], ...] = ()
    others: Nodes = frozenset()
    kinds: frozenset[str] = frozenset()
    slots: Slots = ()
    inexact: bool = False
    arrays: Room = NO_ROOM
    objects: Room = NO_ROOM


@dataclass(frozen=True, slots=True)
class GuardPlan:
    """nodes: the graph; the document is a value of ``root``."""

    nodes: tuple[GuardNode, ...]
    root: Nodes

    @property
    def has_items(self) -> bool:
        """Items of an array must differ."""
        return any(node.unique for node in self.nodes)

    def item(self, nodes: Nodes, index: int) -> Nodes:
        out: Nodes = frozenset()
        for number in nodes:
            node = self.nodes[number]
            out |= node.prefix[index] if index < len(node.prefix) else node.rest
        return out

    def member(self, nodes: Nodes, key: str) -> Nodes:
        out: Nodes = frozenset()
        for number in nodes:
            node = self.nodes[number]
            out |= next((found for name, found in node.names if name == key), node.others)
        return out

    def num_fixed(self, nodes: Nodes) -> int:
        """How many first items of an array have a place of their own; all behind them are alike."""
        return max((len(self.nodes[number].prefix) for number in nodes), default=0)

    def unique(self, nodes: Nodes) -> bool:
        return any(self.nodes[number].unique for number in nodes)

    def distinct(self, nodes: Nodes) -> bool:
        return any(self.nodes[number].distinct for number in nodes)

    def once(self, nodes: Nodes) -> bool:
        return any(self.nodes[number].once for number in nodes)

    def kinds(self, nodes: Nodes) -> frozenset[str]:
        """The JSON types of a value."""
        return frozenset[str]().union(*(self.nodes[number].kinds for number in nodes))

    def slots(self, nodes: Nodes) -> Slots:
        """Of an array, where it is told which one it is."""
        arrays = [self.nodes[number] for number in nodes if "array" in self.nodes[number].kinds]
        return arrays[0].slots if len(arrays) == 1 else ()

    def inexact(self, nodes: Nodes) -> bool:
        """Items of an array may run out in ways that its slots do not tell."""
        found = [self.nodes[number] for number in nodes if "array" in self.nodes[number].kinds]
        return any(node.inexact or (node.slots and len(found) > 1) for node in found)

    def room(self, nodes: Nodes, *, is_array: bool) -> Room:
        """In an array or an object."""
        kind = "array" if is_array else "object"
        found = [node for node in map(self.nodes.__getitem__, nodes) if kind in node.kinds]
        rooms = [node.arrays if is_array else node.objects for node in found]
        return reduce(and_, rooms) if rooms else NO_ROOM

    def to_json(self) -> str:
        """Text that ``from_json`` reads back: the plan travels with the lowered grammar."""
        nodes = [
            {
                "unique": node.unique,
                "distinct": node.distinct,
                "once": node.once,
                "prefix": [sorted(item) for item in node.prefix],
                "rest": sorted(node.rest),
                "names": {name: sorted(found) for name, found in node.names},
                "others": sorted(node.others),
                "kinds": sorted(node.kinds),
                "slots": node.slots,
                "inexact": node.inexact,
                "arrays": _room_json(node.arrays),
                "objects": _room_json(node.objects),
            }
            for node in self.nodes
        ]
        return json.dumps({"nodes": nodes, "root": sorted(self.root)}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> GuardPlan:
        data = json.loads(text)
        return GuardPlan(tuple(_node(item) for item in data["nodes"]), frozenset(data["root"]))


_ANYWHERE: Final[Nodes] = frozenset((0,))
EVERY_KEY_ONCE: Final = GuardPlan((GuardNode(once=True, rest=_ANYWHERE, others=_ANYWHERE),), _ANYWHERE)
"""For JSON of which nothing else is to be watched: the same at every place, as declared keys do not come twice anyway."""


def _node(data: dict[str, Any]) -> GuardNode:
    return GuardNode(
        data["unique"],
        data["distinct"],
        data["once"],
        tuple(frozenset(item) for item in data["prefix"]),
        frozenset(data["rest"]),
        tuple((name, frozenset(found)) for name, found in data["names"].items()),
        frozenset(data["others"]),
        frozenset(data["kinds"]),
        tuple((index, tuple(texts)) for index, texts in data["slots"]),
        data["inexact"],
        _room(data["arrays"]),
        _room(data["objects"]),
    )


def _room_json(room: Room) -> dict[str, Any] | None:
    if room == NO_ROOM:
        return None
    domain = [text.decode("utf-8", "surrogatepass") for text in room.domain]
    return {**asdict(room), "spare": sorted(room.spare), "domain": domain}


def _room(data: dict[str, Any] | None) -> Room:
    if data is None:
        return NO_ROOM
    domain = tuple(text.encode("utf-8", "surrogatepass") for text in data["domain"])
    return Room(**{**data, "spare": frozenset(data["spare"]), "domain": domain})
