"""Explanation of the guarantee of a run in words, on one page."""

from __future__ import annotations

import math
from typing import List, Sequence, Tuple

from edp_mx.dp.accounting.accountants import is_gaussian
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.coverage import UNKNOWN_SCALES
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.ledger_account import LedgerAccount
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.tradeoff import FPRS, Limits, limits_of
from edp_mx.dp.accounting.zcdp import log_epsilon_exact
from edp_mx.reports.improvements import improvements
from edp_mx.reports.ledger_report import say_at_other_deltas
from edp_mx.reports.table import render_table
from edp_mx.runtime.console_text import lines_of

STRONG, MODERATE = 1.0, 10.0  # Ponomareva et al. (2023), "How to DP-fy ML", tiers 1 and 2
POINTLESS = 0.99  # bound on members found at 1 % false alarms that protects nobody

NO_MECHANISM_PAGE = """\
This run has no guarantee: it was trained without a privacy mechanism, and
epsilon is infinite. Whoever sees the model may be able to tell with certainty
whether an utterance was trained on. What would improve it: privacy.mechanism
edp_sgd or dp_sgd; `edp-mx calibrate` finds the noise."""


def explain(account: LedgerAccount, *, name: str) -> str:
    """Return the page on a run with a mechanism."""
    sections = [("", [f"What the guarantee of {name} says"]), *explain_by_section(account)]
    return "\n\n".join("\n".join([title, *lines] if title else lines) for title, lines in sections)


def explain_by_section(account: LedgerAccount) -> List[Tuple[str, List[str]]]:
    """Return the sections of the page: a title and wrapped lines each."""
    spent = account.spent
    bound = spent.holds if not spent.holds.reasons else spent.holds_if
    limits = limits_of(bound, spent)
    sections = [
        ("IN SHORT", _verdict(account, bound, limits)),
        ("WHO IS PROTECTED", who_is_protected(spent)),
        ("AGAINST WHOM", against_whom(spent)),
        ("WHAT EPSILON MEANS", _meaning(spent, bound, limits)),
        ("THE OTHER EPSILON", _other(spent)),
    ]
    if spent.declarations:
        sections.append(
            ("WHAT CAME IN WITHOUT NOISE, AND WHO CALLS IT PUBLIC", _bullets(spent.declarations))
        )
    if account.differences:
        sections.append(("DIFFERENCES FROM THE PLAN", _bullets(account.differences)))
    sections += [
        ("WHAT NO EPSILON HERE COVERS", _bullets([*spent.warnings, *spent.not_covered])),
        ("WHAT WOULD IMPROVE IT", _bullets(improvements(account))),
    ]
    return sections


def _verdict(account: LedgerAccount, bound: Bound, limits: Limits) -> List[str]:
    """State whether there is a guarantee, and if not, why."""
    spent, others = account.spent, say_at_other_deltas(account.spent)
    others = f" ({others})" if others else ""
    if not account.ledger.entries:
        return ["Nothing was released yet, so epsilon is 0."]
    if not spent.holds.reasons:
        at = f"epsilon = {bound.epsilon.in_words()} at delta = {spent.plan.delta:.3g}"
        return lines_of(f"{at}{others}. This is {_grade(spent, limits)}.")
    reasons = "; and ".join(spent.holds.reasons)
    lines = lines_of(f"This is no guarantee: epsilon is infinite, because {reasons}.")
    if bound.reasons:
        return lines
    lines += lines_of(
        f"If {'; and if '.join(bound.conditions)}, epsilon would be "
        f"{bound.epsilon.in_words()} at delta {spent.plan.delta:.3g}{others}. All numbers "
        "below assume these conditions."
    )
    return lines + lines_of(f"Even then it would be {_grade(spent, limits)}.")


def _grade(spent: Guarantee, limits: Limits) -> str:
    """Grade it, by its ε at a δ that is well below 1/n."""
    delta, strict = spent.plan.delta, spent.strict_delta
    judged = next((g for g in spent.at_other_deltas() if g.plan.delta == strict), spent)
    words = _grade_of(judged.holds_if.epsilon, limits)
    if strict == delta:
        return words
    return f"{words}. It is judged at {strict:.3g}, since {delta:.3g} is not well below 1/n"


def _grade_of(epsilon: LogNumber, limits: Limits) -> str:
    if epsilon.log <= math.log(STRONG):
        return "a strong guarantee, as formal guarantees go"
    if epsilon.log <= math.log(MODERATE):
        return "a moderate guarantee: not strong by itself, but of a size in common use"
    if limits.by_fpr[FPRS[0]][1] < POINTLESS:
        return "a weak guarantee: it rules out little beyond the limits below"
    return (
        "no meaningful guarantee: it permits an attacker to identify practically every member. "
        "What protects this run, if anything, is that known attacks are weaker than the bound"
    )


def who_is_protected(spent: Guarantee) -> List[str]:
    """Return wrapped lines on the unit of privacy and the neighbouring data sets."""
    release, record = spent.release, spent.plan.record
    neighbours = "left out, with its gradient counted as zero; its batches stay the same otherwise"
    if release.adjacency == "replace_one":
        neighbours = (
            f"exchanged for any other {record}, with any words, labels and length; the number of "
            f"{record}s is public"
        )
    return lines_of(
        f"One {record} of the {spent.plan.num_records} in the training part. The guarantee "
        f"compares two training sets that differ in one {record}, which is {neighbours}. "
        f"{release.clips.whole}"
    )


def against_whom(spent: Guarantee) -> List[str]:
    """Return wrapped lines on those who may know everything but one record."""
    release = spent.release
    drawn = release.draws.known.format(record=release.record)
    text = (
        "Anyone who sees the trained model, or all intermediate models and the noisy gradient of "
        f"every step; who knows the code, the settings, all other {spent.plan.record}s"
        f"{drawn}; and who can compute without limit. What is done with the model afterwards "
        "changes nothing."
    )
    if release.num_workers > 1:
        single = release.worker_noise_multiplier(spent.plan.noise_multiplier)
        there = f"only {single:.4g}" if not spent.plan.awaits_scales else "not known yet"
        text += (
            f" Not against the {release.num_workers} workers, their network, or observers of the "
            f"message of one of them: there the noise multiplier is {there}."
        )
    if spent.plan.gaussian == "plain":
        text += (
            " The noise was drawn plain: not against someone who reads the last bits of noisy "
            "gradients, or of models one step apart."
        )
    else:
        text += " The noise was drawn hardened: the last bits of what is released say nothing."
    return lines_of(text)


def _meaning(spent: Guarantee, bound: Bound, limits: Limits) -> List[str]:
    """Explain ε by the success of an attacker who guesses."""
    if bound.reasons:
        return lines_of("Infinite means that nothing limits what can be found out.")
    record = spent.plan.record
    header = ["an attacker's", "by epsilon, delta", "by all that is known"]
    rows = [["right guesses, of even odds", *map(_percent, limits.accuracy)]]
    for fpr, shares in limits.by_fpr.items():
        rows.append([f"members found, {100 * fpr:g} % false alarms", *map(_percent, shares)])
    replaced = spent.release.adjacency == "replace_one"
    other = "with another in its place" if replaced else "without it"
    lines = lines_of(
        f"Any result is at most e^epsilon times as likely with the {record} as {other}, "
        f"and vice versa, except for outcomes of total probability {spent.plan.delta:.3g} (delta). "
        "For an attacker who considers both equally likely this means at most:"
    )
    lines += ["", *render_table(header, rows).splitlines(), ""]
    lines += lines_of(
        f"A blind guess is right in 50 % of cases and finds as many members as false alarms. "
        f"By all that is known: {limits.source}."
    )
    if bound.rho is not None and is_gaussian(bound):
        ten = LogNumber(log_epsilon_exact(bound.rho.log + 2 * math.log(10), spent.plan.delta))
        lines += lines_of(
            f"For ten {spent.release.clips.several} of one person together epsilon is {ten}."
        )
    return lines


def _other(spent: Guarantee) -> List[str]:
    """Explain the ε of the paper, and why it differs."""
    release = spent.release
    if not release.clips.is_mean:
        return lines_of(_other_of_dp_sgd(spent, release))
    text = (
        f"The paper would print epsilon = {spent.as_published.epsilon.in_words()}: it takes the "
        "noise multiplier z as it is, lets one utterance move a step by C, counts each epoch "
        "once, and converts by rho + 2 sqrt(rho ln 1/delta)."
    )
    if spent.plan.awaits_scales:
        text += f" What it is in truth nobody can tell: {UNKNOWN_SCALES}."
    elif release.variant == "published":
        ratio, n = release.effective_noise_multiplier(1.0), release.num_workers
        largest = max(release.layer_scales or (1.0,))
        scaled = (
            f" times the largest layer scale, {largest:.4g}, which multiplies a gradient and not "
            "its noise (layer_scales_unit: norm)"
        ) * (largest != 1)
        text += (
            f" What is released has {ratio:.4g} z: the draws of {n} workers add variances, which "
            f"leaves 1/sqrt({n}) of the noise, and one utterance can move the clipped mean of a "
            f"micro-batch by kappa = {release.kappa:g} C{scaled}. The true rho of such steps is "
            f"{1 / ratio**2:.4g} times the paper's."
        )
    else:
        text += " The calibrated variant draws its noise so that z is really what is released."
    text += release.draws.of_edp_sgd
    if spent.plan.scales_source == "first_batch":
        text += " It also ignores the layer scales, which come from private gradients."
    return lines_of(text)


def _other_of_dp_sgd(spent: Guarantee, release: Release) -> str:
    """Explain it for runs in which each utterance or user is clipped."""
    moves = "C" if release.adjacency == "zero_out" else "2 C, when one replaces another"
    text = (
        f"Each {release.record}'s gradient is clipped to C by itself, and the noise of all workers "
        f"together is z times what one {release.record} can move their sum by "
        f"({moves}), so that z is really what is released: kappa = {release.kappa:g}. Their sum is "
        f"divided by the public batch size, never by how many {release.record}s were drawn. "
    )
    text += release.draws.of_dp_sgd.format(
        epsilon=spent.as_published.epsilon, record=release.record
    )
    if spent.plan.scales_source == "first_batch":
        text += " Both ignore the layer scales, which come from private gradients."
    return text


def _percent(share: float) -> str:
    return "100 % (no limit)" if share >= 0.99995 else f"{100 * share:.2f} %"


def _bullets(texts: Sequence[str]) -> List[str]:
    return [line for text in texts for line in lines_of(text, first="- ", rest="  ")]
