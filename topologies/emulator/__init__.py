"""A machine as a Linux guest of QEMU, in which any program runs on the machine's nodes."""

from .command_line import Plugin, Share, memory_ranges
from .guest import GuestFailure, GuestRun, GuestTimeout, run_in_guest
from .guest_machine import GuestMachine, guest_machine
from .shell import run_shell

__all__ = [
    "GuestFailure",
    "GuestMachine",
    "GuestRun",
    "GuestTimeout",
    "Plugin",
    "Share",
    "guest_machine",
    "memory_ranges",
    "run_in_guest",
    "run_shell",
]
