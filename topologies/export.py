"""A description as the text of a machine file, which loads again to the same description."""

import io
from typing import Any

import yaml

from .schema import MachineDescription

_LINE = 96  # columns; what fits stands on one line
_MATRICES = ("slit", "pair_latency", "pair_bandwidth")
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def machine_yaml(description: MachineDescription) -> str:
    """``description`` as YAML: fields at their defaults left out, short parts on one line each."""
    # The fields' serialisers write each quantity as text with its unit.
    plain: dict[str, Any] = description.model_dump(mode="json", exclude_defaults=True)
    root: Any = yaml.SafeDumper(io.StringIO(), sort_keys=False).represent_data(plain)
    _lay_out(root, 0)
    for key, value in root.value:
        if key.value in _MATRICES:  # a row a line, however long
            for row in value.value:
                row.flow_style = True
            value.flow_style = False
    root.flow_style = False
    text: str = yaml.serialize(
        root, Dumper=_Dumper, allow_unicode=True, width=2**30, line_break="\n"
    )
    return text


def _lay_out(node: Any, indent: int) -> int:
    """Sets each collection's style, one line where it fits; returns its length on one line."""
    if isinstance(node, yaml.ScalarNode):
        return len(node.value) + 2  # with quotes
    if isinstance(node, yaml.MappingNode):
        lengths = [len(key.value) + 2 + _lay_out(value, indent + 2) for key, value in node.value]
    else:
        lengths = [_lay_out(part, indent + 2) for part in node.value]
    length = sum(lengths) + 2 * len(lengths)
    node.flow_style = indent + length <= _LINE and indent > 0
    return length
