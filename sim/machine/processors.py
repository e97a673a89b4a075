"""Processors that processes share: ``ProcessorSetup`` of the kernel, where its fields are told."""

from __future__ import annotations

SHARES_NONE = -1  # instead of the home of a process
