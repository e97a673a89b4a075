"""Regular graphs for machine files: each shape turns members into pairs of ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .machine import HubVertex
from .schema import Generator


class Generated(NamedTuple):
    """What a generator adds: hubs of its own, and links as (ends, link type)."""

    hubs: tuple[HubVertex, ...]
    links: tuple[tuple[tuple[int | str, int | str], str], ...]


def generate(generator: Generator, node_ids: Sequence[int], hub_ids: Sequence[str]) -> Generated:
    """The hubs and links of ``generator``; raises ValueError where its parameters do not fit."""
    raise ValueError("not yet")
