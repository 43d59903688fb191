"""Numbers beyond a double; no NaN becomes one, and what is never drawn costs nothing."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.lognumber import LogNumber, exp_of, log_of
from edp_mx.dp.accounting.pld.convolution import Group, Lattice, Mass, convolve
from edp_mx.dp.accounting.pld.interval import epsilon_poisson_pld
from edp_mx.dp.accounting.rdp import epsilon_from_rdp, epsilon_poisson_rdp
from edp_mx.dp.accounting.tradeoff import accuracy_gaussian, tpr_gaussian
from edp_mx.dp.accounting.zcdp import CONVERSIONS, log_epsilon_gdp_clt, log_rho_of

NAN = math.nan


def nan_spectrum():
    lattice = Lattice(0.1, -50, 100, 0.0, (1.0, 1.0))
    step = Mass(np.array([0, 1]), np.array([-0.5, NAN]))
    return convolve(lattice, [Group([step], [(2, (1.0,))])])


@pytest.mark.parametrize(
    "call",
    [
        lambda: log_of(NAN),
        lambda: exp_of(NAN),
        lambda: LogNumber(NAN),
        lambda: epsilon_from_rdp(np.array([1.0, NAN]), orders=[2.0, 3.0], delta=1e-5),
        lambda: CONVERSIONS["exact"](NAN, 1e-5),
        lambda: CONVERSIONS["renyi"](NAN, 1e-5),
        lambda: CONVERSIONS["simple"](NAN, 1e-5),
        lambda: accuracy_gaussian(NAN),
        lambda: tpr_gaussian(NAN, fpr=0.1),
        nan_spectrum,
    ],
)
def test_nan_in_the_midst_of_it_is_an_error(call):
    with pytest.raises(ValueError, match="NaN|not a number"):
        call()


RATES = (1e-9, 1e-3, 0.5, 1 - 1e-12, 1.0)
MULTIPLIERS = (1e-120, 1e-6, 0.3, 1.5, 1e4, 1e160)


@pytest.mark.parametrize("z", MULTIPLIERS)
def test_no_numerical_warning_reaches_users(z):
    with np.errstate(all="raise", under="ignore"):
        for q in RATES:
            steps = Composition("zero_out", [Event("poisson", z, 100, q)])
            for delta in (1e-12, 0.3):
                assert epsilon_poisson_rdp(steps, delta=delta) >= 0
                assert log_epsilon_gdp_clt(steps, delta) < math.inf or z < 1
                for convert in CONVERSIONS.values():
                    convert(log_rho_of(steps.events), delta)


@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one", "replace_in_mean"])
@pytest.mark.parametrize("z, q", [(1.5, 1e-3), (0.3, 1e-4), (1e-6, 0.5), (1e4, 0.5), (1e160, 0.1)])
def test_no_numerical_warning_of_the_sums_of_losses(z, q, neighbours):
    with np.errstate(all="raise", under="ignore"):
        for delta in (1e-12, 1e-6, 0.3):
            steps = Composition(neighbours, [Event("poisson", z, 100, q)])
            found = epsilon_poisson_pld(steps, delta=delta)
            assert 0 <= found.lower <= found.upper


@given(st.floats(1e-300, 1e300))
def test_plain_numbers_come_back(value):
    number = LogNumber(math.log(value))
    assert number.value == pytest.approx(value, rel=1e-12)
    assert number.log10 == pytest.approx(math.log10(value), rel=1e-12, abs=1e-14)


def test_the_ends():
    assert LogNumber(math.log(sys.float_info.max)).value is not None
    assert LogNumber(710.0).value is None and LogNumber(710.0).log10 is not None
    assert LogNumber(-math.inf).value == 0.0 and LogNumber(-math.inf).log10 is None
    infinite = LogNumber(math.inf)
    assert infinite.is_infinite and infinite.value is None and infinite.log10 is None
    assert (exp_of(1e4), exp_of(-math.inf), log_of(0.0)) == (math.inf, 0.0, -math.inf)
