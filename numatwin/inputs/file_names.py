"""What is named after a file: its name without the endings that say how it is written."""

import re

_ENDINGS = re.compile(
    r"(\.(ya?ml|json|tar|tgz|tbz2?|txz|tzst|gz|bz2|xz|lzma|zst|xml|txt|out|output|log))+$",
    re.IGNORECASE,
)


def without_endings(name: str) -> str:
    """``server`` of ``server.tar.bz2`` or ``server.tar.bz2.yaml``; the name itself where nothing
    else is left.
    """
    return _ENDINGS.sub("", name) or name
