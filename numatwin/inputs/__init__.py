"""What users write, read carefully: one error type, quantities with units, safe YAML.

Every folder may import this one; it imports none.
"""

from .atomic import write_bytes_atomically, write_text_atomically
from .errors import InputError
from .quantities import Quantity, format_quantity, parse_quantity
from .yaml_file import DescriptionError, Document, Limits, Strict, load_yaml, parse_yaml

__all__ = [
    "DescriptionError",
    "Document",
    "InputError",
    "Limits",
    "Quantity",
    "Strict",
    "format_quantity",
    "load_yaml",
    "parse_quantity",
    "parse_yaml",
    "write_bytes_atomically",
    "write_text_atomically",
]
