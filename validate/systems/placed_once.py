"""Placers that give one command, when they are first asked: what guests are counted after."""

from collections.abc import Sequence

from numatwin import MovePart, PartitionTable


class Once:
    """Gives ``COMMANDS``, once."""

    COMMANDS: Sequence[MovePart | PartitionTable] = ()

    def __init__(self) -> None:
        self._left = self.COMMANDS

    def decide(self, observation: object) -> Sequence[MovePart | PartitionTable]:
        """Whatever is seen."""
        found, self._left = self._left, ()
        return found


class Move(Once):
    """The first part is on the second node then."""

    COMMANDS = (MovePart("sales", 0, 1),)


class Partition(Once):
    """Half of a table of one part is on each of the first two nodes then."""

    COMMANDS = (PartitionTable("sales", (0, 1)),)
