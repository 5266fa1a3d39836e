"""What agents get: an optional key is left out where it has no value, and every other key is always there."""

from dataclasses import fields, is_dataclass
from types import NoneType
from typing import get_args, get_type_hints

import pytest

from penstock.domain import replies

SHAPES = [shape for shape in vars(replies).values() if is_dataclass(shape) and shape.__module__ == replies.__name__]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_key_without_a_value_is_left_out_and_never_null(shape: type) -> None:
    hints = get_type_hints(shape)
    for each in fields(shape):
        if each.metadata == replies.OPTIONAL:
            assert NoneType in get_args(hints[each.name]), each.name
            assert each.default is None, each.name
