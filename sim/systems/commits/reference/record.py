"""A record: its versions and its lock, and what verbs do to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..history import CONFLICT, LOCKED

GRANTED = -1  # a vote or the result of a CAS, else the cause of an abort
GONE = -2  # of a CAS: its server is out


@dataclass
class Record:
    """One record: its versions, the newest first, and who holds its lock since when."""

    versions: list[int] = field(default_factory=lambda: [0])
    owner: int | None = None
    locked_ps: int = 0

    def visible(self, rid: int) -> int:
        """The newest version that a snapshot sees, or -1 where it is no longer kept."""
        return next((cid for cid in self.versions if cid <= rid), -1)

    def undo(self, keep: int) -> None:
        """The newest version goes."""
        self.versions = [*self.versions[1:], -1][:keep]

    def install(self, cid: int, keep: int) -> None:
        """A new version, which unlocks; the oldest goes where there are more than ``keep``."""
        self.versions = [cid, *self.versions[: keep - 1]]
        self.owner = None


def compare_and_lock(
    record: Record, client: int, expected: int, now_ps: int
) -> tuple[int, int, int]:
    """One CAS: (GRANTED or why not, the lock's owner, its time)."""
    if record.owner is not None:
        return LOCKED, record.owner, record.locked_ps
    if record.versions[0] != expected:
        return CONFLICT, -1, 0
    record.owner, record.locked_ps = client, now_ps
    return GRANTED, client, now_ps


def free(record: Record, owner: int) -> bool:
    """Unlocks if that owner holds it; whether it did."""
    if record.owner != owner:
        return False
    record.owner = None
    return True
