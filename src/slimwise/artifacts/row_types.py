"""Types of the columns of row files: checked, never guessed."""

from collections.abc import Callable, Mapping

import pandas as pd
from pandas.api import types

from slimwise.errors import ArtifactError

_IS_TYPE: Mapping[str, Callable[[pd.Series], bool]] = {
    "str": lambda column: types.infer_dtype(column, skipna=False) == "string",
    "int64": types.is_integer_dtype,
    "float64": types.is_float_dtype,
    "bool": types.is_bool_dtype,
}


def conform_rows(frame: pd.DataFrame, columns: Mapping[str, str], name: str) -> pd.DataFrame:
    """The rows with exactly the columns, in their order and types.

    ArtifactError if a column is missing, has gaps, or holds another type. Numbers of another
    width are converted, and the columns of an empty frame take whatever type is asked.
    """
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ArtifactError(
            f"{name}: columns {', '.join(missing)} are missing; expected {', '.join(columns)}. "
            "Delete it and run the study again."
        )
    for column, kind in columns.items():
        _check_type(frame[column], kind, name)
    return frame.loc[:, list(columns)].astype(dict(columns))


def _check_type(column: pd.Series, kind: str, name: str) -> None:
    num_gaps = int(column.isna().sum())
    if len(column) and (num_gaps or not _IS_TYPE[kind](column)):
        raise ArtifactError(
            f"{name}: column {column.name} holds {column.dtype} values, {num_gaps} of "
            f"{len(column)} missing; expected {kind} without gaps. Run the rule that writes it "
            "again."
        )
