"""Timestamp services: a counter for 2PC, a bit vector for RSI; both know the leading run."""


class TimestampCounter:
    """Hands out timestamps from 1 on, and knows up to where all of them are done with."""

    def __init__(self) -> None:
        self.last = 0
        self.highest_done = 0
        self.done: set[int] = set()

    def next(self) -> int:
        """A new CID."""
        self.last += 1
        return self.last

    def finish(self, cid: int) -> None:
        """This CID is done with; the leading run grows."""
        self.done.add(cid)
        while self.highest_done + 1 in self.done:
            self.highest_done += 1
            self.done.remove(self.highest_done)


class TimestampVector:
    """The bits, a claim beside each, and the end of the leading run."""

    UNSET, CLAIMED, SET = range(3)

    def __init__(self, clients: int, bits: int) -> None:
        self.clients = clients
        self.lap = bits // clients * clients
        self.state = [self.UNSET] * self.lap
        self.highest = 0
        self.top = 0
        """The highest timestamp that was claimed or set."""
        self.skipped_to = 0
        self.retired: set[int] = set()

    def owner(self, cid: int) -> int:
        """The client whose timestamp this is."""
        return (cid - 1) % self.clients

    def next_of(self, client: int, above: int) -> int:
        """The client's first timestamp above that one."""
        laps = max(0, (above - client - 1) // self.clients + 1)
        return client + 1 + laps * self.clients

    def claim(self, cid: int) -> bool:
        """False where it was set in the client's stead."""
        if cid <= self.highest or self.state[cid % self.lap] != self.UNSET:
            return False
        self.state[cid % self.lap] = self.CLAIMED
        self.top = max(self.top, cid)
        return True

    def set(self, cid: int) -> bool:
        """False where it was set before."""
        if cid <= self.highest or self.state[cid % self.lap] == self.SET:
            return False
        self.state[cid % self.lap] = self.SET
        self.top = max(self.top, cid)
        self.advance()
        return True

    def advance(self) -> None:
        """The leading run grows; its bits are free for the next lap."""
        while self.highest < self.top:
            following = self.highest + 1
            bit = following % self.lap
            if self.state[bit] != self.SET and self.owner(following) not in self.retired:
                return
            self.state[bit] = self.UNSET
            self.highest = following

    def skip(self) -> int:
        """Sets what nobody claimed below the highest used; how many these were."""
        count = 0
        for cid in range(max(self.highest, self.skipped_to) + 1, self.top + 1):
            if self.state[cid % self.lap] == self.UNSET:
                self.state[cid % self.lap] = self.SET
                count += 1
        self.skipped_to = self.top
        self.advance()
        return count

    def first_open(self, client: int, claims: bool) -> int:
        """The client's first timestamp that it has claimed and not set; where clients do not claim,
        the first that is not set. What others set in its stead may lie above and below.
        """
        cid = self.next_of(client, self.highest)
        passes = {self.UNSET, self.SET} if claims else {self.SET}
        while cid <= self.top and self.state[cid % self.lap] in passes:
            cid += self.clients
        return cid

    def retire(self, client: int) -> list[int]:
        """From now on the client's timestamps count as set; those that this set."""
        mine = range(self.next_of(client, self.highest), self.top + 1, self.clients)
        fresh = [cid for cid in mine if self.state[cid % self.lap] != self.SET]
        for cid in fresh:
            self.state[cid % self.lap] = self.SET
        self.retired.add(client)
        self.advance()
        return fresh
