"""Valid names: text that is safe in a file name, a path of settings, a picture."""

import re
from typing import Annotated

from pydantic import AfterValidator

NAME_EXPECTED = (
    "at most 64 letters, digits, '.', '_', '+' and '-', beginning with a letter or digit"
)


def is_name(text: str) -> bool:
    """Whether something may be called so: ``NAME_EXPECTED``."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", text) is not None


def check_name(text: str) -> str:
    """``text``, where something may be called so; else raises ValueError."""
    if not is_name(text):
        raise ValueError(f"expected {NAME_EXPECTED}")
    return text


Name = Annotated[str, AfterValidator(check_name)]
