"""Unpacks the emulator's kernel into the cache, where this host has none."""

import sys

from ...inputs import InputError
from .kernel import fetch_kernel, find_kernel

try:
    find_kernel()
except InputError:
    try:
        print(f"the emulator's kernel: {fetch_kernel().image}")
    except InputError as failure:
        sys.exit(f"numatwin: error: {failure}")
