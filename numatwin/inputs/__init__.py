"""What users write, read carefully: one error type, quantities with units, safe YAML.

Every folder may import this one; it imports none. What waits for a library is imported when it is
first asked for, so that commands wait for none before they begin.
"""

from typing import TYPE_CHECKING

from .atomic import check_folder, check_writable, write_bytes_atomically, write_text_atomically
from .errors import DescriptionError, InputError
from .json_text import json_text, read_json, write_json
from .text_lines import check_regular

if TYPE_CHECKING:
    from .quantities import Quantity, format_quantity, parse_quantity
    from .settings import (
        AnyPart,
        OpenPart,
        Setting,
        changed,
        merged,
        moved,
        parse_setting,
        part_of,
        with_setting,
    )
    from .shared_work import Catalogue
    from .yaml_file import Document, Limits, Strict, load_yaml, parse_yaml
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import quantities, settings, shared_work, yaml_file

        homes = (quantities, settings, shared_work, yaml_file)
        return next(getattr(home, name) for home in homes if hasattr(home, name))


__all__ = [
    "AnyPart",
    "Catalogue",
    "DescriptionError",
    "Document",
    "InputError",
    "Limits",
    "OpenPart",
    "Quantity",
    "Setting",
    "Strict",
    "changed",
    "check_folder",
    "check_regular",
    "check_writable",
    "format_quantity",
    "json_text",
    "load_yaml",
    "merged",
    "moved",
    "parse_quantity",
    "parse_setting",
    "parse_yaml",
    "part_of",
    "read_json",
    "with_setting",
    "write_bytes_atomically",
    "write_json",
    "write_text_atomically",
]
