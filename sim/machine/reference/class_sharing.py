"""Max-min fair paces of classes of equal users, as ``sim/kernel/class_sharing.hpp``.

A class has n members, each of which takes some time of every resource that it needs for a unit of
work. A member's pace is the time that a unit takes it: at least the class's least pace. Of each
resource, the sum of n * time / pace is at most its room: 1 unless ``limit`` has said less.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

NONE = 2**32 - 1  # in place of a resource


# What is added and taken off again, so that sums of doubles are exact.
TIME, WANTED, USE = 1.5 * 2.0**32, 1.5 * 2.0**18, 1.5 * 2.0**2


def rounded(value: float, shift: float) -> float:
    """To a multiple that a double of this size can hold."""
    return value + shift - shift


@dataclass
class _Need:
    resource: int
    time: float
    use: float = 0.0
    at_least: float = 0.0


@dataclass
class _Class:
    needs: list[_Need]
    members: int = 0
    least: float = inf
    shared_members: int = 0
    shared_least: float = inf
    pace: float = inf
    next: float = inf
    binding: int = NONE
    next_binding: int = NONE


@dataclass
class _Resource:
    use: float = 0.0
    room: float = 1.0
    wanted: float = 0.0
    bound: int = 0
    users: set[int] = field(default_factory=set)


@dataclass
class _Filling:
    free: float
    slope: float = 0.0
    pace: float = inf
    blocked: bool = False
    moved: bool = False


class ClassSharing:
    """See the header; the same calls."""

    def __init__(self, resources: int) -> None:
        self.resources = [_Resource() for _ in range(resources)]
        self.classes: list[_Class] = []
        self.changed: list[int] = []
        self.limited: list[int] = []

    def add_class(self, needs: Iterable[tuple[int, float]]) -> int:
        """A class without members; (resource, time of a unit)."""
        times = [(resource, rounded(time, TIME)) for resource, time in needs]
        self.classes.append(_Class([_Need(r, time) for r, time in times if time > 0]))
        return len(self.classes) - 1

    def change(self, index: int, members: int, least: float) -> None:
        """From the next ``share`` on."""
        state = self.classes[index]
        state.members, state.least = members, least
        if index not in self.changed:
            self.changed.append(index)

    def limit(self, resource: int, room: float) -> None:
        """From the next ``share`` on, its users have this part of the resource's time."""
        self.resources[resource].room = rounded(room, USE)
        self.limited.append(resource)

    def share(self) -> list[int]:
        """The classes whose pace has changed."""
        changed = [index for index in self.changed if self._update(index)]
        self.changed.clear()
        reached: dict[int, None] = {}  # classes, in the order in which they are reached
        repaced = []
        for index in changed:
            self._reach_bounding(index, reached)
            if self.classes[index].members:
                reached[index] = None
            else:
                repaced.append(index)
        for resource in self.limited:
            self._reach_users(resource, reached)
        self.limited.clear()
        before = -1
        while len(reached) > before:
            self._fill(list(reached))
            before = len(reached)
            self._spread(reached)
        return repaced + self._commit(reached)

    def _update(self, index: int) -> bool:
        state = self.classes[index]
        if state.members == state.shared_members and (
            state.members == 0 or state.least == state.shared_least
        ):
            return False
        state.shared_least = state.least
        for need in state.needs:
            resource = self.resources[need.resource]
            resource.users.add(index)
            resource.wanted -= state.shared_members * need.at_least
            wanted = need.time / state.least if state.least > 0 else inf
            need.at_least = rounded(min(wanted, 2.0), WANTED)
            resource.wanted += state.members * need.at_least
        if state.members == 0:
            for need in state.needs:
                resource = self.resources[need.resource]
                resource.users.remove(index)
                resource.use -= need.use
                need.use = 0.0
            if state.binding != NONE:
                self.resources[state.binding].bound -= 1
            state.binding, state.pace, state.shared_members = NONE, inf, 0
        return True

    def _reach_users(self, index: int, reached: dict[int, None]) -> None:
        """All users of a resource are filled."""
        reached.update(dict.fromkeys(self.resources[index].users))

    def _reach_bounding(self, index: int, reached: dict[int, None]) -> None:
        """All users of what the class uses and what bounds any are filled."""
        for need in self.classes[index].needs:
            if self.resources[need.resource].bound:
                self._reach_users(need.resource, reached)

    def _fill(self, reached: Sequence[int]) -> None:
        """The next paces of these classes; what others use stays."""
        filling: dict[int, _Filling] = {}
        rising: dict[int, list[tuple[int, float]]] = {}
        for index in reached:
            state = self.classes[index]
            parts = []
            for need in state.needs:
                resource = self.resources[need.resource]
                if resource.wanted > resource.room:
                    slope = state.members * need.time
                    filled = filling.setdefault(
                        need.resource, _Filling(resource.room - resource.use)
                    )
                    filled.free += need.use
                    filled.slope += slope
                    parts.append((need.resource, slope))
            if parts:
                rising[index] = parts
            else:
                state.next, state.next_binding = state.shared_least, NONE

        def freeze(index: int, pace: float, binding: int) -> None:
            self.classes[index].next, self.classes[index].next_binding = pace, binding
            rate = 1 / pace
            for resource, slope in rising.pop(index):
                filled = filling[resource]
                filled.slope -= slope
                filled.free -= rounded(slope * rate, USE)
                filled.moved = filled.moved or binding == NONE

        while rising:
            for filled in filling.values():
                if filled.slope == 0:
                    filled.pace = 0.0
                elif filled.free > 0:
                    filled.pace = min(filled.pace, filled.slope / filled.free)
                filled.blocked = filled.moved = False
            slowest = {}
            for index, parts in list(rising.items()):
                most = max(filling[r].pace for r, _ in parts)
                if self.classes[index].shared_least >= most:
                    freeze(index, self.classes[index].shared_least, NONE)
                    continue
                slowest[index] = min(r for r, _ in parts if filling[r].pace == most)
                for r, _ in parts:
                    if filling[r].pace < most:
                        filling[r].blocked = True
            for index, r in slowest.items():
                filled = filling[r]
                if not (filled.blocked or filled.moved):
                    freeze(index, filled.pace, r)

    def _spread(self, reached: dict[int, None]) -> None:
        """Reaches whom the paces found concern, but were not filled; and whom these may concern."""
        filled = list(reached)
        for index in filled:
            state = self.classes[index]
            if state.next_binding != NONE:
                self._reach_users(state.next_binding, reached)
            if state.next != state.pace or state.members != state.shared_members:
                self._reach_bounding(index, reached)
        for index in list(reached)[len(filled) :]:
            self._reach_bounding(index, reached)

    def _commit(self, reached: Iterable[int]) -> list[int]:
        repaced = []
        for index in reached:
            state = self.classes[index]
            if state.next != state.pace or state.members != state.shared_members:
                rate = 1 / state.next
                for need in state.needs:
                    use = rounded(state.members * need.time * rate, USE)
                    self.resources[need.resource].use += use - need.use
                    need.use = use
            if state.next != state.pace:
                repaced.append(index)
            if state.next_binding != state.binding:
                if state.binding != NONE:
                    self.resources[state.binding].bound -= 1
                if state.next_binding != NONE:
                    self.resources[state.next_binding].bound += 1
                state.binding = state.next_binding
            state.pace, state.shared_members = state.next, state.members
        return repaced
