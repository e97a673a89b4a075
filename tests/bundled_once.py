"""What is made of the repository's own files alone is made once a test process, not once a test.

Loading scenarios was a fifth of the tests' time. What depends on any other file is made anew each
time, as it is for users.
"""

from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from numatwin.inputs.shared_work import KEPT_MAX, SharedWork, shared

ROOT = Path(__file__).parents[1]
OF_CONTENT = {"routes", "workers", "hit rates"}
"""Their keys hold all that they are made from."""
Made = TypeVar("Made")


class BundledOnce(SharedWork):
    """Keeps what no test can change."""

    def once(
        self,
        kind: str,
        key: Hashable,
        make: Callable[[], Made],
        most: Callable[[Made], int] = lambda made: KEPT_MAX,
    ) -> Made:
        if kind in ("machine", "workload"):
            named, _, said = key  # type: ignore[misc]
            if "/" not in named and not named.endswith((".yaml", ".yml")):
                return super().once(kind, (named, said), make, most)
        elif kind in OF_CONTENT or (kind == "scenario" and ROOT in Path(str(key)).parents):
            return super().once(kind, key, make, most)
        return make()


@pytest.fixture(scope="session", autouse=True)
def bundled_once() -> Iterator[None]:
    with shared(BundledOnce()):
        yield
