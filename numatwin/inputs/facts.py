"""Numbers without a unit that may have a range and a source."""

from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from .yaml_file import Strict

Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Fact(Strict):
    """A number without a unit, alone (``10``) or with its range and source, as a quantity has."""

    value: Factor
    range: tuple[Factor, Factor] | None = None
    source: str | None = None
    doubtful: bool = False

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        return {"value": raw} if isinstance(raw, (int, float, str)) else raw

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "number"}, handler(core_schema)]}

    def _fits(self) -> None:
        if self.range is not None and not self.range[0] <= self.value <= self.range[1]:
            raise ValueError("range: expected lower bound ≤ value ≤ upper bound")
