"""A fit repeats, goes on where it stopped, and learns what it should learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import sgpd
from sgpd.fields import taken
from sgpd.gp import ValueGaussian
from sgpd.inference.initial import initial_posterior
from sgpd.inference.variational.bound import bound
from sgpd.inference.variational.engine import _noise, initial_state, selection_draws, train
from sgpd.inference.variational.problem import prepare, side_by_side
from sgpd.models.fit import _turn, choose_integrator

SHORT = sgpd.Variational(steps=3, shooting=False, features=32, paths=2, window=10)


def short_problem(pendulum, seeds, **options):
    settings = sgpd.Variational(**{**vars(SHORT), **options})
    guess = initial_posterior(sgpd.structures.Separable(), pendulum)
    problem, parameters, _ = prepare(pendulum, guess, sgpd.integrators.get("stormer-verlet"), settings, "latent")
    problem, parameters = side_by_side([(problem, parameters)] * len(seeds))
    return problem, initial_state(problem, parameters, seeds)


def leaves(state):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state.parameters)]


def test_stopping_and_going_on_changes_no_number_and_seeds_side_by_side_are_seeds_alone(pendulum):
    options = dict(epochs=4, batch=4, select_last=2)
    problem, start = short_problem(pendulum, [7], **options)
    whole = train(problem, start)
    resumed = train(problem, train(problem, start, epochs=1))
    assert resumed.epoch == whole.epoch == 4
    for a, b in zip(leaves(whole), leaves(resumed), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.best.error, resumed.best.error)

    problem, start = short_problem(pendulum, [3, 7], **options)
    both = train(problem, start)
    for a, b in zip(leaves(whole), leaves(both), strict=True):
        # Adam divides by the size of past gradients, which turns rounding of tiny ones into steps of 1e-8
        np.testing.assert_allclose(a[0], b[1], atol=1e-6)
    assert any(np.abs(leaf[0] - leaf[1]).max() > 1e-6 for leaf in leaves(both))


def test_selection_keeps_the_epoch_whose_rollouts_are_closest_to_the_recording(pendulum):
    """With a learning rate that ruins the field after the first epoch, the first one is kept."""
    ruin = optax.piecewise_constant_schedule(1e-6, {1: 1e6})
    problem, start = short_problem(pendulum, [0], epochs=4, select_last=4, learning_rate=ruin, window=100)
    state = train(problem, start)
    first = train(problem, start, epochs=1)
    assert state.best.error[0] == first.best.error[0]
    assert state.best.epoch[0] == 1
    for kept, early in zip(jax.tree.leaves(state.best.parameters), leaves(first), strict=True):
        np.testing.assert_array_equal(kept, early)
    assert any(np.abs(a - b).max() > 0.1 for a, b in zip(leaves(state), leaves(first), strict=True))


def test_the_draws_that_won_the_selection_come_back_with_the_error_they_won_with(pendulum):
    """Squared distance of the mean of their rollouts from the recording; x0="observed" starts them at its first row."""
    settings = sgpd.Variational(**{**vars(SHORT), "epochs": 3, "select_last": 2})
    model = sgpd.fit(pendulum, "separable", "stormer-verlet", x0="observed", inference=settings)
    selection, rows = model.facts.selection, pendulum.runs[0].states
    key = jax.random.wrap_key_data(jnp.asarray(selection.key, jnp.uint32))
    fields = selection_draws(model.posterior, key, settings.features, settings.sampling)
    paths = [np.asarray(_rolled(taken(fields, index), model, rows)) for index in range(5)]
    error = ((np.mean(paths, axis=0) - rows)[1:] ** 2).sum()
    assert selection.epoch in (2, 3)
    # q(z) was turned into whitened coordinates in between, through a nearly singular matrix
    assert error == pytest.approx(selection.rollout_error, rel=1e-6)
    assert sgpd.fit(pendulum, "separable", "stormer-verlet", inference=SHORT).facts.selection is None


def _rolled(field, model, rows):
    states = [jnp.asarray(rows[0])]
    for _ in rows[1:]:
        states.append(model.integrator.step(field, states[-1], model.step)[0])
    return states


def test_what_was_maximised_is_called_by_its_name(pendulum, model):
    assert model.objective == "lower bound"
    paper = sgpd.Variational(**{**vars(SHORT), "stride": 5, "kl_factor": 1e-6, "noise_std": (0.3, 0.3)})
    composite = sgpd.fit(pendulum, "separable", "symplectic-euler", x0="observed", inference=paper)
    assert composite.objective == "composite likelihood"
    np.testing.assert_allclose(composite.noise_std, 0.3)  # known, so not learned
    np.testing.assert_array_equal(composite.joint.start_root, 0)  # starts at the observation


def test_several_runs_with_gaps_and_missing_values_are_fitted(pendulum):
    run = pendulum.runs[0]
    holes = run.states[:40].copy()
    holes[5:9, 0] = np.nan
    holes[0, 1] = np.nan
    later = np.delete(np.arange(100), slice(60, 75))  # a gap
    data = sgpd.Trajectories.from_arrays([run.times[:40], run.times[later]], [holes, run.states[later]])
    models = sgpd.fit(data, "separable", inference=SHORT, seed=[0, 1])
    assert len(models) == 2
    assert set(models[0].pieces.run) == {0, 1}
    assert models[0].predict(duration=1.0, paths=2, run=0).times[0] == run.times[39]
    with pytest.raises(ValueError, match="x0='known' needs first rows without missing values"):
        sgpd.fit(data, "separable", x0="known", inference=SHORT)


def test_a_fitted_pendulum_has_the_true_field(pendulum):
    """Noise is a tenth of the motion; over the recorded region the field is right to a tenth of its size."""
    model = sgpd.fit(pendulum, "separable", x0="known", inference=sgpd.Variational(steps=100))
    q = jnp.linspace(-2.2, 2.2, 21)
    p = jnp.linspace(-4.0, 4.0, 21)
    field = model.mean()
    force = jax.vmap(lambda y: field.dp(y[None])[0])(q)
    velocity = jax.vmap(lambda y: field.dq(y[None])[0])(p)
    assert np.sqrt(np.mean((force + 6 * np.sin(q)) ** 2)) < 0.6
    assert np.sqrt(np.mean((velocity - p) ** 2)) < 0.4
    objective = [line.objective for line in model.history]
    assert np.mean(objective[-10:]) > np.mean(objective[:10])


@pytest.mark.parametrize(
    ("system", "structure"), [("non-separable", "hamiltonian"), ("rigid-body", "quadratic-invariant")]
)
def test_fits_run_through_implicit_steps_with_gradients(system, structure):
    system = sgpd.systems.get(system)
    times, states = system.record(seed=0)
    data = sgpd.Trajectories.from_arrays(times[:60], states[:60])
    settings = sgpd.Variational(steps=6, shooting=False, window=15, features=64, paths=2)
    model = sgpd.fit(data, structure, "implicit-midpoint", inference=settings)
    assert all(np.isfinite(line.objective) for line in model.history)
    assert all(line.steps_converged == 1 for line in model.history)
    assert max(line.worst_residual for line in model.history) < 1e-10
    report = model.check_claims(2.0, paths=2)
    kept = {"hamiltonian": ("determinant", "symplectic"), "quadratic-invariant": ("invariant",)}[structure]
    assert all(report[check_id].verdict == "PASS" for check_id in (*kept, "steps"))


def test_the_gradient_of_the_bound_through_implicit_steps_equals_finite_differences():
    system = sgpd.systems.get("non-separable")
    times, states = system.record(seed=0)
    data = sgpd.Trajectories.from_arrays(times[:20], states[:20])
    guess = initial_posterior(sgpd.structures.Hamiltonian(), data, points=9)
    settings = sgpd.Variational(shooting=False, window=10, features=16, paths=2)
    problem, parameters, _ = prepare(data, guess, sgpd.integrators.get("gauss-4"), settings, "latent")
    noise = _noise(problem, guess, jr.key(0))
    arrays, rest = eqx.partition(parameters, lambda leaf: leaf.dtype == float)
    flat, unravel = jax.flatten_util.ravel_pytree(arrays)

    @jax.jit
    def value(flat):
        whole = eqx.combine(unravel(flat), rest)
        return bound(whole, problem.observations, jnp.arange(2), noise, problem.integrator).weighted()

    directions = jr.normal(jr.key(1), (5, flat.size))
    step = 1e-6
    differences = [(value(flat + step * v) - value(flat - step * v)) / (2 * step) for v in directions]
    np.testing.assert_allclose(directions @ jax.grad(value)(flat), differences, rtol=1e-5)


def coupled_oscillators():
    """Two masses on hardening springs: H = |p|²/2 + q₁²/2 + q₂² + (q₁ - q₂)⁴/4."""
    apart = lambda q: (q[0] - q[1]) ** 3
    return sgpd.SplitField(
        dp=lambda q: jnp.stack([-q[0] - apart(q), -2 * q[1] + apart(q)]),
        dq=lambda p: p,
    )


@pytest.mark.slow
def test_the_default_fit_of_a_clean_four_dimensional_system_forecasts_it():
    """200 rows, noise 1 % of the signal, no setting: 20 s from the true start stay within a tenth of the signal."""
    field, gauss = coupled_oscillators(), sgpd.integrators.get("gauss-6")
    x0 = jnp.array([0.3, -0.2, 1.0, -0.6])
    exact = jax.jit(lambda: sgpd.integrators.rollout(gauss, field, x0, jnp.full(2000, 0.01), 10).states)()
    signal = np.sqrt((np.asarray(exact) ** 2).mean())
    noise = 0.01 * signal * np.random.default_rng(0).normal(size=(200, 4))
    data = sgpd.Trajectories.from_arrays(0.1 * np.arange(200), exact[:200] + noise)
    forecast = sgpd.fit(data, "separable").predict(x0, start="first", duration=20.0, paths=16)
    assert np.sqrt(((forecast.best - exact) ** 2).mean()) < 0.1 * signal
    assert np.sqrt(((forecast.mean - exact) ** 2).mean()) < 0.1 * signal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(structure="separabel"), "Did you mean 'separable'"),
        (dict(structure="hamiltonian", integrator="stormer-verlet"), "needs the structure 'separable'"),
        (dict(structure="separable", x0="knwon"), "Did you mean 'known'"),
        (dict(structure="separable", inference="laplas"), "inference engine"),
    ],
)
def test_bad_settings_are_refused_before_any_work(pendulum, arguments, message):
    with pytest.raises(ValueError, match=message):
        sgpd.fit(pendulum, **arguments)


def test_an_odd_dimension_is_refused_for_a_hamiltonian():
    data = sgpd.Trajectories.from_arrays(np.arange(10.0), np.random.default_rng(0).normal(size=(10, 3)))
    with pytest.raises(ValueError, match="as many momenta as positions"):
        sgpd.fit(data, "separable")


def test_several_recordings_side_by_side_are_recordings_alone(pendulum):
    system = sgpd.systems.get("pendulum")
    other = sgpd.Trajectories.from_arrays(*system.record(seed=2), names=["p", "q"])
    settings = sgpd.Variational(**{**vars(SHORT), "epochs": 2})
    both = sgpd.fit([pendulum, other], "separable", inference=settings, seed=[3, 4])
    for data, seed, model in ((pendulum, 3, both[0]), (other, 4, both[1])):
        alone = sgpd.fit(data, "separable", inference=settings, seed=seed)
        for a, b in zip(jax.tree.leaves(alone.posterior), jax.tree.leaves(model.posterior), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        np.testing.assert_allclose(alone.joint.starts, model.joint.starts, atol=1e-6)


def test_recordings_and_seeds_that_do_not_match_are_refused(pendulum):
    with pytest.raises(ValueError, match="2 seeds but 1 entries in data"):
        sgpd.fit([pendulum], "separable", inference=SHORT, seed=[0, 1])
    times, states = sgpd.systems.get("pendulum").record(seed=2)
    shorter = sgpd.Trajectories.from_arrays(times[:45], states[:45])
    with pytest.raises(ValueError, match="rows and gaps alike"):
        sgpd.fit([pendulum, shorter], "separable", inference=SHORT, seed=[0, 1])


def test_a_fit_starts_from_the_posterior_that_it_is_given(pendulum):
    """With a learning rate of nothing the given posterior comes back, also one kept in the values' own coordinates."""
    guess = initial_posterior(sgpd.structures.Separable(), pendulum)
    values = tuple(ValueGaussian(q.mean, jnp.zeros_like(q.mean)) for q in guess.values)
    groups = tuple(eqx.tree_at(lambda g: g.kernel.log_variance, g, g.kernel.log_variance + 0.3) for g in guess.groups)
    given = eqx.tree_at(lambda q: (q.groups, q.values), guess, (groups, values))
    still = sgpd.Variational(**{**vars(SHORT), "epochs": 1, "learning_rate": optax.constant_schedule(0.0)})
    model = sgpd.fit(pendulum, given.structure, inference=still, initial=given)
    for a, b in zip(jax.tree.leaves(given.plain()), jax.tree.leaves(model.posterior), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_posterior_of_another_structure_is_no_start(pendulum):
    other = initial_posterior(sgpd.structures.Separable(form="components"), pendulum)
    with pytest.raises(ValueError, match="as the structure"):
        sgpd.fit(pendulum, "separable", inference=SHORT, initial=other)


@pytest.mark.parametrize(("interval", "method"), [(0.1, "stormer-verlet"), (0.6, "yoshida-4")])
def test_the_automatic_integrator_has_order_four_where_a_step_is_a_large_part_of_the_motion(interval, method):
    """The pendulum turns by about 2.2 radians in a second; splines see a little less of it when rows are far apart."""
    system = sgpd.systems.get("pendulum")
    times = interval * np.arange(60)
    data = sgpd.Trajectories.from_arrays(times, system.simulate(system.x0, times))
    assert choose_integrator("auto", sgpd.structures.Separable(), data).name == method
    assert choose_integrator("auto", sgpd.structures.Free(), data).name == "rk4"
    assert 1.2 < _turn(data) / interval < 2.5


def test_swapped_momenta_and_positions_are_told_before_the_fit(pendulum):
    run = pendulum.runs[0]
    swapped = sgpd.Trajectories.from_arrays(run.times, run.states[:, ::-1], names=["q", "p"])
    with pytest.warns(sgpd.SgpdWarning, match="p falls where q is positive; if the two are swapped, the fit learns -H"):
        sgpd.fit(swapped, "separable", inference=sgpd.Variational(shooting=False, epochs=1))
