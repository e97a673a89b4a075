"""What running a command line in a test leaves behind."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Done(NamedTuple):
    """A command line's status and what it printed."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON object on standard output."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    def said(self) -> str:
        """What it printed; nothing went wrong, and nothing else is told."""
        assert (self.status, self.err) == (0, "")
        return self.out


CommandLine = Callable[..., Done]
Refused = Callable[..., str]
