"""Settings that are declared once and used by the library, the command line and the service."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import podium
from podium.core.errors import ParameterError
from podium.core.params import Range, check_settings, parameters
from podium.core.settings import CompareSettings, LeaderboardSettings, TuneSettings
from podium.methods.choice import BradleyTerry


@pytest.mark.parametrize(
    ("function", "settings"), [(podium.tune, TuneSettings), (podium.compare, CompareSettings)]
)
def test_defaults_of_a_function_are_those_of_its_settings(function, settings):
    signature = inspect.signature(function).parameters
    for p in parameters(settings):
        assert signature[p.name].default == p.default, p.name


def test_the_prior_of_a_leaderboard_is_that_of_the_method():
    assert LeaderboardSettings().l2 == BradleyTerry().l2


def test_numbers_of_other_libraries_are_numbers():
    settings = LeaderboardSettings(seed=np.int64(3), level=np.float32(0.5), top=np.int32(2))
    assert (settings.seed, settings.top) == (3, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"folds": 1}, "folds is 1; accepted: whole numbers from 2"),
        ({"folds": 2.5}, "folds is 2.5; accepted: whole numbers"),
        ({"level": 1.0}, "level is 1.0; accepted: numbers between 0 and 1, both excluded"),
        ({"level": math.nan}, "level is nan; accepted: numbers between 0 and 1, both excluded"),
        ({"search": "all"}, "search is 'all'; accepted: random, grid, halving"),
        ({"limit": 0}, "limit is 0; accepted: numbers above 0"),
        ({"trials": None}, "trials is None; accepted: whole numbers"),
    ],
)
def test_a_message_says_what_is_accepted(values, message):
    with pytest.raises(ParameterError) as error:
        check_settings(TuneSettings, values)
    assert str(error.value) == message


def test_a_setting_without_a_value_is_accepted_where_its_type_says_so():
    check_settings(TuneSettings, {"folds": None, "workers": None, "budget": None})


@pytest.mark.parametrize("low", [-1.0, 0.0, 2.5])
@pytest.mark.parametrize("open_low", [False, True])
@pytest.mark.parametrize("open_high", [False, True])
def test_an_interval_includes_its_ends_unless_they_are_open(low, open_low, open_high):
    interval = Range(low, low + 1, open_low, open_high)
    assert (low in interval) == (not open_low)
    assert (low + 1 in interval) == (not open_high)
    assert low + 0.5 in interval
    assert low - 1e-9 not in interval
    assert low + 1 + 1e-9 not in interval


def test_the_service_has_a_field_for_every_setting_of_a_leaderboard():
    pytest.importorskip("pydantic")
    pytest.importorskip("fastapi")
    models = pytest.importorskip("podium.studio.api.request_models")
    fields = models.LeaderboardRequest.model_fields
    for p in parameters(LeaderboardSettings):
        if p.name != "l2":  # null stands for the default there
            assert fields[p.name].default == p.default, p.name
