"""What a schema expected, in plain words: pydantic's own speak of tuples and instances."""

from __future__ import annotations

from pydantic_core import ErrorDetails

# By pydantic's type of error; the names in braces are those of its context.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_too_long": "text, at most {max_length} long",
    "string_too_short": "text, at least {min_length} long",
    "string_type": "text",
    "too_long": "at most {max_length} in it",
    "too_short": "at least {min_length} in it",
    "tuple_type": "a list",
}


def expected_by(problem: ErrorDetails) -> str | None:
    """What was expected instead of the value at fault; None where its message says it."""
    words = _EXPECTED.get(problem["type"])
    if words is None:
        return None
    context = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in problem.get("ctx", {}).items()
    }
    return words.format(**context)
