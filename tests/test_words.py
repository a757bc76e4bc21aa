"""Values for config.py, of the type that its own value has there."""

import pytest

from amt_hydra.unkept import same
from amt_hydra.words import fit


@pytest.mark.parametrize(
    ("value", "own", "expected"),
    [
        (206, "auto", 206),
        (206, "16", "206"),
        (0.1, 0, 0.1),
        (2, 0, 2),
        ([0, 0.7], [0, 0.5], [0.0, 0.7]),
        ([1, 2], [3, 4], [1, 2]),
        (["a", 2], ["b", 1], ["a", 2]),
    ],
)
def test_a_value_takes_the_type_that_its_own_has(value: object, own: object, expected: object) -> None:
    assert repr(fit(value, own)) == repr(expected)


@pytest.mark.parametrize("value", [1.5, "x", 0.5])
def test_a_count_is_whole(value: object) -> None:
    with pytest.raises(ValueError, match="takes a whole number"):
        fit(value, 12)


def test_a_path_in_other_letters_is_another_path() -> None:
    assert not same("/data/AMT", "/data/amt")
    assert same("AdamW", "adamw")
