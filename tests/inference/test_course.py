"""A quantity along a recording: block means, their straight trend and its standard error."""

import numpy as np
import pytest

import sgpd
from sgpd.inference.course import Course, along_recording, slope_of


def test_a_slope_and_its_standard_error_are_those_of_linear_regression():
    values = np.array([1.0, 1.4, 1.1, 2.0, 2.2, 2.1])
    design = np.stack([np.ones(6), np.arange(6)], axis=1)
    coefficients, square, *_ = np.linalg.lstsq(design, values)
    covariance = square[0] / 4 * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(slope_of(values), [coefficients[1], np.sqrt(covariance[1, 1])], rtol=1e-12)


def test_a_trend_is_found_in_the_averages():
    times = np.linspace(5.0, 25.0, 241)
    course = Course.of(times, 8.0 - 0.1 * (times - 5) + 0.3 * np.sin(40 * times))
    assert course.change == pytest.approx(-0.25, abs=0.02)
    assert "falls by 25 %" in course.sentence("H", "20 s")
    at, line = course.line
    np.testing.assert_allclose(line, 8.0 - 0.1 * (at - 5), atol=0.06)


def test_a_few_rows_have_a_level_and_no_trend_to_judge():
    course = Course.of(np.arange(4.0), np.arange(4.0))
    assert course.change == 0
    assert np.isnan(course.error)


def test_rows_that_are_left_over_do_not_count():
    values = np.concatenate([np.ones(36), [1e9] * 11])
    assert Course.of(np.arange(47.0), values).slope == 0


def test_a_function_of_the_state_is_followed_along_the_smoothed_recording():
    t = 0.1 * np.arange(60)
    run = sgpd.data.Run(t, np.stack([np.cos(t), np.sin(t)], axis=1))
    np.testing.assert_allclose(along_recording(lambda x: x @ x, run), 1.0, atol=1e-3)
