"""The answers that decoders are compared on."""

import pandas as pd

from slimwise.core.vocabulary import DecoderId

_ITEM = ["benchmark", "item_id"]


def comparable_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The rows without items that only the full decoder was asked, to check its accuracy floor.

    All rows where there is no other decoder.
    """
    is_full = answers["decoder"] == str(DecoderId())
    if is_full.all():
        return answers
    asked = pd.MultiIndex.from_frame(answers.loc[~is_full, _ITEM])
    return answers[pd.MultiIndex.from_frame(answers[_ITEM]).isin(asked)]
