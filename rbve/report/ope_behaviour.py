"""How well the behaviour that made a log is known."""

from rbve.off_policy.behaviour import MOST_OPTIMISM
from rbve.off_policy.judge import OpeResult
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.ope_words import BLUE, GREY
from rbve.report.page import Section


def behaviour_section(result: OpeResult) -> Section:
    own = result.propensities.calibration
    points = tuple(Point(p, o, note=f"{n:,} pairs") for p, o, n in own.bins if n)
    chart = Chart(
        "calibration", "Reliability of the estimated behaviour",
        "Each dot is a tenth of the range of predicted probabilities, on episodes that were not "
        "fitted.",
        "lines", "predicted probability", "share of decisions",
        (Panel("", (Series("cloning", BLUE, points),
                    Series("right", GREY, (Point(0.0, 0.0), Point(1.0, 1.0)), dash=1))),),
    )  # fmt: skip
    near = own.optimism <= MOST_OPTIMISM
    used = "used for support alone: weights come from the logged propensities"
    if result.propensities.source == "estimated":
        used = "weights are those of a fit to all episodes" if near else "used as weights"
    body = (
        f"<p>Log loss {own.log_loss:.3f} nats a decision (choosing among legal actions at random: "
        f"{own.uniform_log_loss:.3f}); expected calibration error {own.error:.2%} after a "
        f"temperature of {own.temperature:.2f}; {used}. On its own episodes a fit "
        f"has {own.optimism:.1%} less (its weights are used up to {MOST_OPTIMISM:.0%}).</p>"
    )
    return Section("behaviour", "The behaviour", body, (chart,))
