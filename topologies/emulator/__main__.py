"""Unpacks the emulator's kernel into the cache, where this host has none.

For guests of another architecture that is the first argument.
"""

import sys

from ...inputs import InputError
from .image import fetch_kernel, find_kernel
from .platforms import find_busybox, host_architecture, platform_of

try:
    platform = platform_of(sys.argv[1] if len(sys.argv) > 1 else host_architecture())
    try:
        find_kernel(platform)
        if platform.foreign:
            find_busybox(platform)
    except InputError:
        print(f"the emulator's kernel: {fetch_kernel(platform).image}")
except InputError as failure:
    sys.exit(f"numatwin: error: {failure}")
