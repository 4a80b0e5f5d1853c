"""The suite: every promise tried by hypothesis on cases that it draws, and shrinks when one fails."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from shoal.errors import missing_extra
from shoal.testing.findings import BROKEN, NOT_OFFERED, NOT_SEEN, Broken, ContractBroken, Finding, NotOffered, describe
from shoal.testing.player import Case, same_moments
from shoal.testing.promises import autoreset, buffers, refusals, repeats, returns, seats
from shoal.testing.subject import MakeBatch, Subject

try:
    import hypothesis
    from hypothesis import strategies as st
except ImportError:
    raise missing_extra("hypothesis", "check", "Checking a batch") from None

Promise = Callable[[Subject, Case], None]

PROMISES: tuple[Promise, ...] = (
    returns.spaces_describe_the_batch,
    returns.an_ending_has_one_cause,
    repeats.same_seed_same_trajectory,
    repeats.lanes_do_not_know_their_neighbours,
    autoreset.each_batch_announces_its_own_mode,
    autoreset.same_step_gives_the_true_successor,
    autoreset.next_step_ignores_the_action_and_pays_nothing,
    autoreset.disabled_resets_only_whom_it_is_told,
    autoreset.disabled_refuses_to_step_an_ended_lane,
    returns.infos_are_dense,
    returns.episode_statistics_add_up,
    buffers.what_step_returns_is_the_callers,
    buffers.without_copies_the_same_values,
    buffers.step_into_writes_where_it_is_told,
    repeats.state_is_a_value,
    returns.the_action_mask_allows_something,
    seats.a_turn_names_a_seat_that_is_there,
    seats.actions_of_seats_that_wait_change_nothing,
    seats.who_has_left_stays_away_and_is_paid_nothing,
    refusals.a_wrong_number_of_actions_is_refused,
    refusals.an_action_outside_the_space_is_refused,
    refusals.a_nan_action_is_refused,
    refusals.step_before_reset_is_refused,
    refusals.step_after_close_is_refused,
)

ABOUT_MAKING = {autoreset.each_batch_announces_its_own_mode, refusals.step_before_reset_is_refused}
ABOUT_MAKING |= {refusals.step_after_close_is_refused}  # these need new batches, and steps and seeds mean nothing

LONGEST_EPISODE = 1_000  # steps of random actions in which an end is looked for


def promise_name(promise: Promise) -> str:
    """The promise's name in words."""
    return promise.__name__.replace("_", " ")


def check_batch(
    make_batch: MakeBatch,
    *,
    num_envs: int = 3,
    num_steps: int | None = None,
    max_examples: int = 8,
    promises: Sequence[Promise] = PROMISES,
    on_promise: Callable[[str], None] = lambda name: None,
) -> list[Finding]:
    """Try the promises of `shoal.vector.batch` on the batches that `make_batch` makes.

    Args:
        make_batch: `make_batch(num_envs, **options) -> VectorEnv`. If it takes `autoreset_mode` and `copy` (or any
            keyword), these are tried, too.
        num_envs: lanes of the largest case.
        num_steps: steps of the longest case; by default a little longer than an episode under random actions.
        max_examples: cases drawn for each promise.
        promises: which ones to try.
        on_promise: called with the name of each promise before it is tried.

    Returns:
        What was found: broken promises with the smallest case that shows each, and promises that are not offered or
        could not be seen. An empty list is full conformance.
    """
    subject = Subject(make_batch)
    try:
        num_steps = num_steps or _steps_to_see_an_end(subject)
        cases = case_strategy(num_envs, num_steps)
        findings = []
        for promise in promises:
            on_promise(promise_name(promise))
            findings.append(_try_promise(promise, subject, cases, 2 if promise in ABOUT_MAKING else max_examples))
        if not subject.saw_an_end:
            sentence = f"No episode ended within {num_steps} random steps, so nothing about endings was tested."
            findings.append(Finding("episodes end", f"{sentence} Try a larger num_steps.", NOT_SEEN))
        return [finding for finding in findings if finding is not None]
    finally:
        subject.forget()


def assert_batch(make_batch: MakeBatch, **options: object) -> None:
    """`check_batch` for tests: raises `ContractBroken` if a promise is broken."""
    broken = [finding for finding in check_batch(make_batch, **options) if finding.severity == BROKEN]  # type: ignore[arg-type]
    if broken:
        raise ContractBroken(broken)


def check_agreement(
    make_batch: MakeBatch,
    make_reference: MakeBatch,
    names: tuple[str, str],
    *,
    num_envs: int = 3,
    num_steps: int = 100,
    max_examples: int = 8,
) -> list[Finding]:
    """Do two ways to make a batch give the same trajectories, bit for bit?"""
    subject, reference = Subject(make_batch), Subject(make_reference)

    def two_ways_agree(subject: Subject, case: Case) -> None:
        same_moments(subject.player(case).play(), reference.player(case).play(), names)

    try:
        finding = _try_promise(two_ways_agree, subject, case_strategy(num_envs, num_steps), max_examples)
    finally:
        subject.forget()
        reference.forget()
    return [] if finding is None else [finding]


def case_strategy(num_envs: int, num_steps: int) -> st.SearchStrategy[Case]:
    """Cases up to these sizes. The longest is drawn often, because only long cases see an episode end."""
    return st.builds(
        Case,
        num_envs=st.integers(1, num_envs),
        num_steps=st.integers(1, 2 * num_steps).map(lambda k: min(k, num_steps)),
        seed=st.integers(0, 2**31 - 1),
        action_seed=st.integers(0, 999),
    )


def _try_promise(
    promise: Promise, subject: Subject, cases: st.SearchStrategy[Case], max_examples: int
) -> Finding | None:
    """The finding about one promise, or None if every case kept it."""
    refusal: list[NotOffered] = []
    failures: list[tuple[Broken, Case]] = []

    @hypothesis.settings(
        max_examples=max_examples,
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )
    @hypothesis.given(case=cases)
    def holds(case: Case) -> None:
        if refusal:
            return
        try:
            promise(subject, case)
        except NotOffered as reason:
            refusal.append(reason)
        except Exception as error:
            verdict = error if isinstance(error, Broken) else Broken(f"It raised {describe(error)}.")
            failures.append((verdict, case))
            subject.forget()
            raise

    name = promise_name(promise)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            holds()
    except Exception:
        if not failures:
            raise
        # the last failure is the smallest: hypothesis runs the case it has shrunk to once more at the end
        verdict, case = failures[-1]
        return Finding(name, f"{verdict} [{case}]", BROKEN)
    return Finding(name, str(refusal[0]), NOT_OFFERED) if refusal else None


def _steps_to_see_an_end(subject: Subject) -> int:
    """A little more than an episode takes under random actions."""
    case = Case(num_envs=1, num_steps=LONGEST_EPISODE, seed=0, action_seed=0)
    try:
        player = subject.player(case)
        for k in range(LONGEST_EPISODE):
            if player.step(player.choose()).done.any():
                return max(40, k + k // 4)
    except Broken:
        return 50  # the promises will say what is wrong
    return 50
