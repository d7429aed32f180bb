import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from rich.console import Console
from support.reports import add_run, embedded_table, finals

from rbve import rows
from rbve.report import table, write_report
from rbve.report.summary import group
from rbve.report.words import headline
from rbve.rows import Row

NAN = math.nan
# Final returns on three datasets, and over-estimation errors where values exist.
RETURNS = {
    "rbve": (0.9, 1.0, 0.95),
    "dqn": (0.0, 0.3, 0.6),
    "bc": (0.5, 0.5, 0.5),
    "mine<script>alert(1)": (0.1, 0.2, 0.3),
}
OVER = {"rbve": (0.0, 0.01, 0.02), "dqn": (4.0, NAN, 10.0)}


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    for algorithm, returns in RETURNS.items():
        for dataset, value in enumerate(returns):
            file = add_run(folder, algorithm, dataset)
            diverged = (algorithm, dataset) == ("dqn", 1)
            steps = (100,) if diverged else (100, 200, 300)
            file.append([Row(step, "return", value * step / steps[-1], 100) for step in steps])
            file.append([Row(step, "train/loss", 1.0, 100) for step in steps])
            measured = {"return": value, "normalised_return": 100 * (value + 0.6) / 1.6}
            if algorithm in OVER:
                over = OVER[algorithm][dataset]
                measured |= {"overestimation": over, "value_error": over, "action_gap": 0.5}
            if diverged:
                file.append([Row(100, "diverged_at", 57.0, 1)])
            file.append(finals(measured, steps[-1]))
    offline = add_run(
        folder,
        "rbve",
        env=None,
        id="</code><script>alert(2)</script>",
        data={"path": "logs/shop", "keep": 1.0},
        facts={"random_return": None, "reference_return": None, "recording": None},
    )
    offline.append([Row(300, "train/loss", 0.25, 300), Row(300, "train/q", NAN, 300)])
    return folder


@pytest.fixture
def problems(runs):
    return group(rows.find([runs]))


def test_problems_and_methods(problems):
    assert [problem.label for problem in problems] == [
        "catch · 10% of episodes",
        "shop · data only",
    ]
    catch, shop = problems
    names = [method.name for method in catch.methods]
    assert names[:3] == ["R-BVE", "DDQN", "BC"]
    assert [method.n for method in catch.methods] == [3, 3, 3, 3]
    assert [method.diverged for method in catch.methods] == [0, 1, 0, 0]
    assert len(catch.datasets) == 3
    assert catch.references["behaviour_return"] == pytest.approx(0.7)
    assert not shop.evaluated
    assert "reference_return" not in shop.references


def test_json_equals_hand_computed_figures(problems):
    content = json.loads(json.dumps(table.as_json(problems), allow_nan=False))
    catch, shop = content["problems"]
    rbve, dqn, bc, _ = catch["methods"]
    assert rbve["return"]["mean"] == pytest.approx(0.95)
    assert rbve["return"]["error"] == pytest.approx(0.05 / math.sqrt(3))
    reach = 4.302653 * 0.05 / math.sqrt(3)  # Student, two degrees of freedom
    assert (rbve["return"]["low"], rbve["return"]["high"]) == pytest.approx(
        (0.95 - reach, 0.95 + reach)
    )
    assert (rbve["return"]["datasets"], rbve["return"]["over"]) == (3, "datasets")
    assert rbve["normalised_return"]["mean"] == pytest.approx(100 * 1.55 / 1.6)
    assert rbve["overestimation"]["median"] == pytest.approx(0.01)
    assert dqn["return"]["mean"] == pytest.approx(0.3)
    assert dqn["overestimation"]["n"] == 2
    assert dqn["overestimation"]["median"] == pytest.approx(7.0)
    assert dqn["diverged"] == 1
    assert bc["overestimation"] == {
        **dict.fromkeys(bc["overestimation"]),
        "n": 0,
        "datasets": 0,
    }
    assert shop["methods"][0]["train_loss"]["mean"] == 0.25
    assert shop["methods"][0]["return"]["n"] == 0


def test_terminal_tables(problems):
    console = Console(file=io.StringIO(), width=200)
    first, second = map(table.table, problems)
    console.print(first)
    text = console.file.getvalue()
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if "│" in line}
    assert "0.95 [0.83, 1.07]" in lines["R-BVE"]
    assert "In brackets: 95% Student interval over 3 datasets." in text
    assert "7.00 (2 of 3)" in lines["DDQN"]
    assert "–" in lines["BC"]
    assert "0.70" in lines["behaviour (data mean)"]
    assert "−0.60" in lines["random"]
    assert {"best episode in data", "online reference"} <= set(lines)
    console.print(second)
    assert "last training loss" in console.file.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (487.3, "487"),
        (0.00123, "0.0012"),
        (-12345.6, "−12,346"),
        (-1234567.0, "−1.2e6"),
        (-1e-9, "−1.0e−9"),
        (NAN, "–"),
        (math.inf, "–"),
        (None, "–"),
    ],
)
def test_numbers_in_words(value, text):
    assert table.number(value) == text


def test_rounding_to_zero_has_no_sign():
    assert table.number(-0.001, 2) == "0.00"


def test_headline(problems):
    best, choice, near, over, diverged = headline(problems[0])
    assert best == "Best mean return: R-BVE 0.95 [0.83, 1.07] (n=3); behaviour 0.70."
    gain = "it returns 0.45 [0.33, 0.57] more than cloning (BC)"
    assert choice == f"Choose R-BVE here: {gain}, over 3 datasets."
    # DDQN's three returns spread so far that their mean may be anywhere from −0.45 to 1.05.
    assert near == "The interval of DDQN overlaps with that of the best."
    assert over == "Median over-estimation error: lowest R-BVE, 0.010; highest DDQN, 7.00."
    assert diverged == "Diverged runs: DDQN 1 of 3."
    assert headline(problems[1])[0].startswith("No returns: trained from data alone")


def test_headline_names_what_is_not_apart_from_the_best(tmp_path):
    for dataset, (first, second) in enumerate([(0.5, 0.6), (0.7, 0.4), (0.9, 0.8)]):
        add_run(tmp_path, "rbve", dataset).append(finals({"return": first}))
        add_run(tmp_path, "bve", dataset).append(finals({"return": second}))
    add_run(tmp_path, "bc").append(finals({"return": 0.1}))
    (problem,) = group(rows.find([tmp_path]))
    assert headline(problem)[1] == "The interval of BVE overlaps with that of the best."


def test_curve_holds_the_last_return_of_a_diverged_run(problems):
    curve = dict(problems[0].methods[1].curve)
    assert list(curve) == [100, 200, 300]
    assert curve[200].mean == pytest.approx((0.0 + 0.3 + 0.4) / 3)
    assert curve[300].n == 3


def test_settings_that_differ_make_methods(tmp_path):
    for lam in (0.1, 0.005):
        for dataset in (0, 1):
            config = {"lam": lam, "nu": 0.05}
            add_run(tmp_path, "rbve", dataset, config=config).append(finals({"return": lam}))
    add_run(tmp_path, "bve", learning_rate=1e-4).append(finals({"return": 0.0}))
    (problem,) = group(rows.find([tmp_path]))
    assert [(m.name, m.n) for m in problem.methods] == [
        ("R-BVE λ=0.005", 2),
        ("R-BVE λ=0.1", 2),
        ("BVE", 1),
    ]
    assert problem.methods[1].settings == {"lam": 0.1}


def test_a_run_found_twice_counts_once(runs):
    (catch, _) = group(rows.find([runs, runs]))
    assert [method.n for method in catch.methods] == [3, 3, 3, 3]


def without_scripts(page):
    return re.sub(r"<script(?: [^>]*)?>.*?</script>", "", page, flags=re.DOTALL)


def test_page(runs, tmp_path):
    page = write_report([runs], tmp_path / "out")
    assert page == tmp_path / "out" / "index.html"
    text = page.read_text()
    root = ElementTree.fromstring(without_scripts(text))  # well-formed to the last element
    assert root.get("lang") == "en"
    assert [each.text for each in root.iter("h1")] == ["Results of learning from logged data"]
    charts = [each for each in root.iter("figure") if each.get("class") == "chart"]
    assert len(charts) == 3
    for chart in charts:
        assert "n = 3 runs" in "".join(chart.itertext())
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', text)) <= set(ids)


def test_page_is_self_contained_and_escaped(runs, tmp_path):
    page = write_report([runs], tmp_path / "report.html")
    text = page.read_text()
    seen = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append((tag, dict(attributes)))

    Tags().feed(text)
    assert not {tag for tag, _ in seen} & {"link", "img", "iframe", "object", "embed"}
    scripts = [attributes.get("type") for tag, attributes in seen if tag == "script"]
    # Data of three charts and the table of runs; Vega, one script of ours.
    assert scripts == ["application/json"] * 3 + ["application/gzip", None, None]
    assert not any("src" in attributes for _, attributes in seen)
    links = [attributes["href"] for _, attributes in seen if "href" in attributes]
    assert links
    assert all(link.startswith("#") or (tmp_path / link).is_file() for link in links)
    own = re.sub(r'<script id="vega">.*?</script>', "", text, flags=re.DOTALL)
    assert len(own) < 0.2e6 < len(text) < 2e6
    assert set(re.findall(r"https?://[^\"']*", own)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in own
    assert '<th scope="row">mine&lt;script&gt;alert(1)</th>' in text
    assert "</code><script>alert(2)" in str(embedded_table(text, "every-run"))
    assert "<script>alert" not in text


def test_every_run_tells_where_it_diverged(runs, tmp_path):
    text = write_report([runs], tmp_path / "page.html").read_text()
    content = embedded_table(text, "every-run")
    column = content["columns"].index("diverged at")
    cells = [row[column] for row in content["rows"]]
    assert [cell for cell in cells if cell is not None] == [57]
    assert len(cells) == 13


def test_files_beside_the_page(runs, tmp_path, problems):
    write_report([runs], tmp_path / "out")
    folder = tmp_path / "out" / "figures"
    images = sorted(folder.glob("*.png"))
    kinds = ("curves", "overestimation", "returns")
    assert [image.name for image in images] == [f"1-catch-10-of-episodes-{k}.png" for k in kinds]
    assert all(image.read_bytes().startswith(b"\x89PNG") for image in images)
    lines = list(csv.DictReader(io.StringIO((folder / "summary.csv").read_text())))
    methods = [line for line in lines if line["kind"] == "method"]
    assert len(methods) == 5
    assert float(methods[0]["return_mean"]) == problems[0].methods[0].estimates["return"].mean
    assert float(methods[1]["overestimation_median"]) == 7.0
    assert methods[2]["overestimation_median"] == ""
    references = {line["method"]: line for line in lines if line["problem"].startswith("catch")}
    assert float(references["behaviour (data mean)"]["return_mean"]) == pytest.approx(0.7)


def test_equal_rows_give_an_equal_page(runs, tmp_path):
    first = write_report([runs], tmp_path / "a" / "page.html").read_bytes()
    assert write_report([runs], tmp_path / "b" / "page.html").read_bytes() == first


def test_odd_names_survive(tmp_path):
    odd = 'a$b^{"]]>--> & [bold]\n漢\x01\ud800'
    for dataset in (0, 1):
        name = {"path": f"data/{odd}"}
        job, other = f"{odd}{dataset}", {"recording": None}
        file = add_run(tmp_path, "bve", dataset, data=name, id=job, facts=other)
        file.append([Row(300, "return", 0.5, 10), *finals({"return": 0.5, "overestimation": 0.0})])
    page = write_report([tmp_path], tmp_path / "out.html")
    assert ElementTree.fromstring(without_scripts(page.read_text())).tag == "html"
    console = Console(file=io.StringIO(), width=200)
    console.print(table.table(group(rows.find([tmp_path]))[0]))
    assert "[bold]" in console.file.getvalue()


def test_no_runs_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        write_report([tmp_path / "nothing"], tmp_path / "out")
