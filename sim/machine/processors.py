"""Processors that processes share: ``ProcessorSetup`` of the kernel, where its fields are told."""

SHARES_NONE = -1  # instead of the home of a process
