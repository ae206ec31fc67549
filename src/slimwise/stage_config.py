"""The base of every stage's slice of the configuration."""

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

_COMMAND_LINE = "_args"


class StageConfig(BaseModel):
    """A frozen slice that refuses unknown keys; descriptions give unit and source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _lists_name_everything_once(self) -> Self:
        """What is named twice would be measured twice, and told apart by nothing."""
        for key, values in self:
            if not isinstance(values, tuple) or key.endswith(_COMMAND_LINE):
                continue
            for index, value in enumerate(values):
                if value in values[:index]:
                    raise ValueError(f"{key} names {value} twice: leave one out")
        return self

    def by_default(self, *keys: str) -> Self:
        """The slice with these keys, which have defaults, as if they had not been given."""
        fields = type(self).model_fields
        return self.model_copy(
            update={key: fields[key].get_default(call_default_factory=True) for key in keys}
        )
