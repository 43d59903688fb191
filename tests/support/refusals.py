"""Errors of users: each is one sentence."""

import pytest

from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.errors import UserError


def one_sentence(match, call, *arguments, **named):
    """The sentence by which a call is refused."""
    with pytest.raises(UserError, match=match) as error:
        call(*arguments, **named)
    assert "\n" not in str(error.value)
    return str(error.value)


def refused(path, match, layout="auto", **columns):
    """The sentence by which a reader refuses a corpus, read by these settings."""
    return one_sentence(match, read_utterances, path, layout, ColumnsConfig(**columns))
