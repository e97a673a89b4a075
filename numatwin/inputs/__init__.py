"""What users write, read carefully: one error type, quantities with units, safe YAML.

Every folder may import this one; it imports none.
"""

from .atomic import check_folder, check_writable, write_bytes_atomically, write_text_atomically
from .errors import InputError
from .json_text import json_text, read_json, write_json
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
from .text_lines import check_regular
from .yaml_file import DescriptionError, Document, Limits, Strict, load_yaml, parse_yaml

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
