"""The policy card: what a log supports, which policy was chosen, and what to doubt."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import escape

from rbve.audit import WORDS as AUDIT_WORDS
from rbve.audit import Audit
from rbve.off_policy.details import ActionsOfGroup, Details, Explained
from rbve.off_policy.rule import guess
from rbve.off_policy.select import Selection
from rbve.report import ope_page, page
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.ope_words import BLUE, GREY, acting_words, html_table, number, with_interval
from rbve.report.page import Section
from rbve.report.render import part

_ACTIONS, _GROUP_ACTIONS = 20, 8  # drawn; in a table


def write(selection: Selection, audit: Audit, data: str, out: Path) -> Path:
    """Write the card; figures and their numbers lie beside it."""
    result = selection.result
    about = (
        f"{escape(data)}: judged by {result.episodes:,} held-out episodes "
        f"({result.decisions:,} decisions), discount {result.gamma:g}, propensities "
        f"{result.propensities.source}{acting_words(result)}."
    )
    sections = [
        _recommendation(selection),
        _candidates(selection),
        _training(selection, audit, data),
    ]
    if selection.details is not None:
        sections += _details(selection, selection.details)
    sections += [each for each in ope_page.sections(result) if each.id != "summary"]
    sections.append(_limits(selection))
    return page.write(sections, out, "Policy card", about)


def _recommendation(selection: Selection) -> Section:
    advice = selection.recommendation
    reasons = "".join(f"<li>{escape(each)}</li>" for each in advice.reasons)
    own = with_interval(selection.result.behaviour, selection.result.behaviour_interval)
    name = f": {advice.policy}" if advice.decision == "deploy" else ""
    body = f"<p class='headline'>{escape(advice.words + name)}.</p><ul>{reasons}</ul>"
    body += f"<p>The log's own behaviour returns {escape(own)} an episode.</p>"
    shown = _shown(selection)
    words = (
        "Load it" if advice.decision == "deploy" else f"This card is about {shown}. To look at it"
    )
    call = "act(observation)" if selection.policies[shown].features is None else "decide(row)"
    body += (
        f"<p>{escape(words)}: <code>rbve.Policy.load({escape(repr(str(selection.files[shown])))})"
        f"</code>, then <code>policy.{call}</code>, which takes the best action. It was judged "
        f"as acting {escape(selection.result.acting)}.</p>"
    )
    return Section("recommendation", "Recommendation", body, first=True)


def _candidates(selection: Selection) -> Section:
    by_name = {each.policy: each for each in selection.result.judgements}
    errors = selection.result.bellman_errors
    rows = []
    for name in selection.recommendation.ranking:
        judgement = by_name[name]
        best = judgement.best
        failed = [gate.name for gate in judgement.refusing] if best is None else []
        rows.append(
            (
                name, number(guess(judgement, selection.result.returns)),
                "–" if best is None else with_interval(best.value, best.interval),
                "–" if best is None else with_interval(best.difference, best.difference_interval),
                f"{judgement.agreement:.0%}",
                *([number(errors.get(name))] if errors else []),
                ", ".join(failed) or "none",
            )
        )  # fmt: skip
    heads = ("candidate", "ranked by", "estimate", "difference to the behaviour",
             "takes the logged action", *(["Bellman error"] if errors else []),
             "gates failed")  # fmt: skip
    body = (
        "<p>Best first, by the doubly robust number where its gates pass and by the fitted value, "
        "within the returns seen, where they do not. Only what passed is an estimate.</p>"
        + html_table(heads, rows)
    )
    return Section("candidates", "Candidates and their checkpoints", body)


def _training(selection: Selection, audit: Audit, data: str) -> Section:
    """The log, what the policy learned from, and what the audit says of it."""
    name, judged = _shown(selection), selection.result.episodes
    policy = selection.policies[name]
    trained, features = policy.trained, policy.features
    columns = audit.observation if features is None else ", ".join(features.names)
    counts = audit.counts
    facts = {
        "Log": f"{data}: {counts.episodes:,} episodes, {counts.transitions:,} decisions",
        "Held out": f"{judged:,} episodes that can be followed, to judge by; the others trained",
        "Observations": columns,
        "Actions": ", ".join(policy.actions),
        "Policy": f"{name}: {policy.algorithm.name}, {trained.step or 0:,} updates, discount "
        f"{trained.gamma:g}",
        "Audit": AUDIT_WORDS[audit.verdict],
    }
    found = "".join(
        f"<li>{escape(each.name)}: {escape(each.seen)}; {escape(each.remedy)}</li>"
        for each in audit.findings
    )
    found += "".join(f"<li>{escape(note)}</li>" for note in audit.notes)
    body = part("definitions", facts) + (f"<ul>{found}</ul>" if found else "")
    return Section("audit", "What it was trained on", body)


def _shown(selection: Selection) -> str:
    """The policy that the card is about."""
    advice = selection.recommendation
    return advice.policy or advice.ranking[0]


def _details(selection: Selection, details: Details) -> list[Section]:
    name = _shown(selection)
    often = {
        action: max(share, details.chosen_actions[action])
        for action, share in details.logged_actions.items()
    }
    shown = sorted(often, key=lambda action: -often[action])[:_ACTIONS]
    left_out = len(often) - len(shown)
    logged, chosen = (
        tuple(Point(action, 100 * shares[action]) for action in shown)
        for shares in (details.logged_actions, details.chosen_actions)
    )
    series = (Series("the log", GREY, logged, marker="ring"), Series(name, BLUE, chosen))
    chart = Chart(
        "actions", "How often each action is taken",
        "Share of held-out decisions, in percent."
        + (f" {left_out} actions that both take less often are left out." if left_out else ""),
        "rows", "", "% of decisions", (Panel("", series),), x_scale="category",
    )  # fmt: skip
    rows = [
        (each.logged, each.chosen, f"{each.decisions:,}", f"{each.share:.1%}",
         number(each.gain), f"{each.support:.1%}")
        for each in details.changes
    ]  # fmt: skip
    heads = ("the log takes", "it takes", "decisions", "share", "gain by the fitted values",
             "the behaviour takes that")  # fmt: skip
    body = (
        f"<p>{escape(name)} takes the logged action in {details.agreement:.0%} of held-out "
        "decisions. Where it does not:</p>" + html_table(heads, rows)
    )
    if not selection.result.by:
        body += "<p class='muted'>With --by COLUMN, actions and values by subgroup too.</p>"
    return [
        Section("differs", "Where it differs from the behaviour", body, (chart,)),
        *_actions_by_group(selection.result.by, details.groups),
        Section(
            "unsupported",
            "Decisions with the least support",
            "<p>States in which the behaviour least often takes what the policy chooses.</p>"
            + _explained(details.least_supported),
        ),
        Section(
            "examples", "Decisions explained", "<p>A random few.</p>" + _explained(details.examples)
        ),
    ]


def _actions_by_group(by: str, groups: Sequence[ActionsOfGroup]) -> list[Section]:
    if not groups:
        return []
    often = {a: max(max(g.logged[a], g.chosen[a]) for g in groups) for a in groups[0].logged}
    shown = sorted(often, key=lambda action: -often[action])[:_GROUP_ACTIONS]
    rows = [
        (
            group.name, f"{group.decisions:,}",
            *(f"{group.logged[each]:.0%} → {group.chosen[each]:.0%}" for each in shown),
        )
        for group in groups
    ]  # fmt: skip
    body = "<p>Share of decisions, of the log → of the policy."
    if left_out := len(often) - len(shown):
        body += f" {left_out} actions that are taken less often are left out."
    body += "</p>" + html_table((by, "decisions", *shown), rows)
    return [Section("actions-by-group", f"Actions by {by}", body)]


def _explained(decisions: Sequence[Explained]) -> str:
    rows = [
        (
            each.place,
            ", ".join(f"{name} {value}" for name, value in list(each.observation.items())[:8]),
            each.logged,
            each.chosen,
            ", ".join(f"{name} {number(value)}" for name, value in each.scores.items()),
            number(each.gap),
            f"{each.support:.1%}",
            "; ".join(
                f"{near.action} → {number(near.followed)} (at {near.distance:.2f})"
                for near in each.neighbours
            ),
        )
        for each in decisions
    ]
    heads = ("decision", "observation", "log", "policy", "scores", "gap", "support",
             "nearest logged: action → return (distance)")  # fmt: skip
    return html_table(heads, rows)


def _limits(selection: Selection) -> Section:
    result = selection.result
    notes = [
        *result.notes,
        f"{len(result.judgements)} candidates were judged by one log: the best of many is partly "
        "the luckiest, and the level of its interval is shared out over them.",
        "Estimates hold if the log's decisions depended on nothing that is not in its columns.",
        "They are of the people and times in the log; others may differ.",
    ]
    items = "".join(f"<li>{escape(each)}</li>" for each in notes)
    return Section("limits", "What to doubt", f"<ul>{items}</ul>")
