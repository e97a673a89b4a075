"""What a page says to who reads it."""

import re


def visible(page: str) -> str:
    """The page without scripts, style and tags."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
