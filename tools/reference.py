"""Writes the reference pages from the schemas and the public interface: reference.py FOLDER

One page for each kind of file, and for what Python offers. Of each field: its type with its unit,
what it is by default, its range and an example that the schema allows.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numatwin
from numatwin.cli.schema import Kind, json_schema
from numatwin.inputs import format_quantity
from numatwin.sim.systems.registry import systems
from numatwin.topologies.facts.schema import Facts

Schema = Mapping[str, Any]
DEFS = "#/$defs/"
BOUNDS = (
    ("exclusiveMinimum", "above {}"),
    ("minimum", "at least {}"),
    ("exclusiveMaximum", "below {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} in it"),
    ("maxItems", "at most {} in it"),
    ("minProperties", "at least {} in it"),
)
TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
}
TYPES |= {"null": "nothing", "object": "mapping", "array": "list"}


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    found = {
        f"{kind.value}.md": schema_page(
            "Engine profiles" if kind is Kind.engine else f"{kind.value.title()} files",
            json_schema(kind),
        )
        for kind in Kind
        if kind is not Kind.scenario
    }
    scenario = json_schema(Kind.scenario)
    for system in systems():
        of = {**scenario["$defs"][system.name], "$defs": scenario["$defs"]}
        title = f"Scenario files of kind `{system.name}`"
        found[f"scenario-{system.name}.md"] = schema_page(title, of)
        if system.facts is not None:
            title = f"Machine files: the part `engines: {system.name}`"
            found[f"engine-{system.name}.md"] = schema_page(title, system.facts.model_json_schema())
        if system.profile is not None:
            title = f"Engine profiles: the `facts` of engines of kind `{system.name}`"
            schema = system.profile.model_json_schema()
            found[f"profile-{system.name}.md"] = schema_page(title, schema)
    found["catalogue.md"] = schema_page("The catalogue of facts", Facts.model_json_schema())
    found["record.md"] = record_page()
    found["python.md"] = python_page()
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in found.items()}
    links = "\n".join(f"- [{title}]({name})" for name, title in titles.items())
    return {"index.md": f"# Reference\n\nMade from the schemas and the code.\n\n{links}\n", **found}


def schema_page(title: str, schema: Schema) -> str:
    """All fields of a schema: those of the whole file first, then each of its parts."""
    definitions = schema.get("$defs", {})
    parts = [f"# {title}\n\n{_prose(schema)}{_fields(schema, definitions)}"]
    reached = _reached(schema, definitions)
    parts += [
        f'<a id="{_anchor(name)}"></a>\n\n## {_short(name)}\n\n'
        f"{_prose(definitions[name])}{_fields(definitions[name], definitions)}"
        for name in definitions
        if name in reached
    ]
    return "\n".join(parts)


def _reached(schema: Any, definitions: Schema, seen: set[str] | None = None) -> set[str]:
    """Names of the definitions that the schema refers to, directly or not."""
    seen = set() if seen is None else seen
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                name = value.removeprefix(DEFS)
                if name not in seen:
                    seen.add(name)
                    _reached(definitions[name], definitions, seen)
            elif key != "$defs":
                _reached(value, definitions, seen)
    elif isinstance(schema, list):
        for one in schema:
            _reached(one, definitions, seen)
    return seen


def _prose(schema: Schema) -> str:
    text = inspect.cleandoc(schema.get("description", "")).replace("``", "`")
    return f"{text}\n\n" if text else ""


def _fields(schema: Schema, definitions: Schema) -> str:
    fields = schema.get("properties", {})
    if not fields:
        return f"{type_text(schema)}: {_code(example_of(schema, definitions))}\n"
    lines = ["| field | type | default | range | example |", "| --- | --- | --- | --- | --- |"]
    for name, field in fields.items():
        needed = name in schema.get("required", ())
        default = "*needed*" if needed else _default(field)
        cells = (f"`{name}`", type_text(field), default, range_text(field))
        shown = _code(example_of(field, definitions))
        lines.append(f"| {' | '.join(map(_cell, cells))} | {shown} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
    return f"`{text}`"


def _default(field: Schema) -> str:
    value = default_of(field)
    if value is None:
        return "–"
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if len(text) <= 60 else "see its part"


def default_of(field: Schema) -> Any:
    """The default as it would be written in a file; None for none."""
    value = field.get("default")
    if isinstance(value, Mapping) and "low" in value:  # a quantity as the code has it
        forms = field.get("anyOf", [field])
        noun = next(form["description"] for form in forms if "description" in form)
        dimension = noun.removeprefix("A ").removesuffix(" with its unit").replace(" ", "_")
        return format_quantity(value["value"], dimension)
    return value


def type_text(field: Schema) -> str:
    """The type in words; a quantity with its unit."""
    if "$ref" in field:
        name = field["$ref"].removeprefix(DEFS)
        return f"[{_short(name)}](#{_anchor(name)})"
    if "const" in field or "enum" in field:
        return " or ".join(_code(value) for value in field.get("enum", [field.get("const")]))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field:
            forms = [form for form in field[key] if form.get("type") != "null"]
            if _is_quantity(field):
                forms = forms[:1]
            return " or ".join(dict.fromkeys(map(type_text, forms)))
    kind = field.get("type")
    if kind == "array":
        inner = field.get("prefixItems", [field.get("items", {})])
        return f"list of {', '.join(dict.fromkeys(map(type_text, inner)))}"
    if kind == "object" and isinstance(field.get("additionalProperties"), Mapping):
        return f"mapping of names to {type_text(field['additionalProperties'])}"
    if str(field.get("description", "")).endswith("with its unit"):
        return f"{field['description'].removeprefix('A ')}"
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join(TYPES[one] for one in kinds if one in TYPES) or "any value"


def _is_quantity(field: Schema) -> bool:
    """Text with a unit, or the same with range and source."""
    return str(field["anyOf"][0].get("description", "")).endswith("with its unit") if (
        "anyOf" in field
    ) else False  # fmt: skip


def range_text(field: Schema) -> str:
    """The bounds that a value, or an item of it, has to keep."""
    found = [text.format(f"{field[key]:,}") for key, text in BOUNDS if key in field]
    for key in ("anyOf", "oneOf", "allOf"):
        found += [text for form in field.get(key, ()) if (text := range_text(form)) != "–"]
    if isinstance(field.get("items"), Mapping):
        inner = range_text(field["items"]).removeprefix("each ")  # of lists in a list once
        found += [f"each {inner}"] if inner != "–" else []
    if _is_quantity(field):
        found = ["above 0, or 0 where that makes sense"]
    return ", ".join(dict.fromkeys(found)) or "–"


def example_of(field: Schema, definitions: Schema, depth: int = 0) -> Any:
    """A value that the field may have."""
    if field.get("examples"):
        return field["examples"][0]
    if "$ref" in field:
        return example_of(definitions[field["$ref"].removeprefix(DEFS)], definitions, depth)
    if "const" in field:
        return field["const"]
    if "enum" in field:
        return field["enum"][0]
    if default_of(field) not in (None, [], {}, ""):
        return default_of(field)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field:
            forms = [form for form in field[key] if form.get("type") != "null"]
            return example_of(forms[0], definitions, depth)
    kind = field.get("type")
    if kind == "object":
        return _example_mapping(field, definitions, depth)
    if kind == "array":
        inner = field.get(
            "prefixItems", [field.get("items", {})] * max(field.get("minItems", 1), 1)
        )
        return [example_of(one, definitions, depth + 1) for one in inner]
    if kind in ("integer", "number"):
        return _example_number(field)
    return {"boolean": True}.get(str(kind), "name")


def _example_number(field: Schema) -> float:
    """1 where that is allowed; else the nearest bound, or the middle of open ones."""
    if "exclusiveMaximum" in field:
        low = field.get("minimum", field.get("exclusiveMinimum", 0))
        return float(low + field["exclusiveMaximum"]) / 2
    value: float = max(field.get("minimum", 1), 1)
    if "exclusiveMinimum" in field:
        value = max(value, field["exclusiveMinimum"] + 1)
    return min(value, field.get("maximum", value))


def _example_mapping(field: Schema, definitions: Schema, depth: int) -> dict[str, Any]:
    fields = field.get("properties", {})
    made = {
        name: example_of(fields[name], definitions, depth + 1)
        for name in field.get("required", ())
        if name in fields
    }
    values = field.get("additionalProperties")
    if not fields and isinstance(values, Mapping) and depth < 4:
        made["name"] = example_of(values, definitions, depth + 1)
    return made


def record_page() -> str:
    """The fields of a Record, with what the code says of each."""
    record = numatwin.Record
    texts = _attribute_texts(record)
    lines = [f"# Record\n\n{_text(record)}\n", "| field | type | what |", "| --- | --- | --- |"]
    lines += [
        f"| `{field.name}` | `{_cell(str(field.type))}` | {_cell(texts.get(field.name, ''))} |"
        for field in dataclasses.fields(record)
    ]
    return "\n".join(lines) + "\n" + "".join(_methods(record))


def _attribute_texts(kind: type) -> dict[str, str]:
    """The texts that stand below the fields of a class."""
    (body,) = ast.parse(inspect.getsource(kind).strip()).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value).replace("``", "`")
    return found


def python_page() -> str:
    """All that ``import numatwin`` offers."""
    parts = ["# Python\n\nAll that `import numatwin` offers.\n"]
    for name in numatwin.__all__:
        offered = getattr(numatwin, name)
        if inspect.isclass(offered):
            parts.append(f"\n## {name}\n\n{_text(offered)}\n")
            parts += _methods(offered)
        elif callable(offered):
            parts.append(f"\n## {name}\n\n{_signature(name, offered)}{_text(offered)}\n")
        else:
            parts.append(f"\n## {name}\n\n`{offered!r}`\n")
    return "".join(parts)


def _methods(kind: type) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        own = any(
            name in vars(one) for one in kind.__mro__ if one.__module__.startswith("numatwin")
        )
        if name.startswith("_") or not own or not inspect.getdoc(member):
            continue
        if inspect.isfunction(member):
            yield f"\n### {kind.__name__}.{name}\n\n{_signature(name, member)}{_text(member)}\n"
        elif hasattr(member, "func") or isinstance(member, property):
            yield f"\n### {kind.__name__}.{name}\n\n{_text(member)}\n"


def _signature(name: str, offered: Any) -> str:
    return f"```python\n{name}{inspect.signature(offered)}\n```\n\n"


def _text(offered: Any) -> str:
    """A docstring as Markdown: numpydoc's sections as lists."""
    text = (inspect.getdoc(offered) or "").replace("``", "`")
    head, *sections = re.split(r"^(Parameters|Returns|Raises)\n-+\n", text, flags=re.M)
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        items = re.sub(r"^(\S.*)$", r"- `\1`", body.strip(), flags=re.M)
        head += f"**{title}**\n\n{items}\n\n"
    return head.rstrip()


def _short(name: str) -> str:
    return name.rpartition(".")[2].rpartition("__")[2]


def _anchor(name: str) -> str:
    return name.replace(".", "-").lower()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (target / file).write_text(text, encoding="utf-8")
