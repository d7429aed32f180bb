"""Reference pages read from the code: what is one file of the package is one page of the site.

What is judgement stands in docs/notes, a file for each, and is put at the end of its page.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import docs_results
import jax
import jax.numpy as jnp

from rbve import algorithms, envs, networks, ops
from rbve.audit import WORDS
from rbve.data import formats
from rbve.evaluation import metric
from rbve.off_policy import estimators
from rbve.report.labels import METHODS
from rbve.types import Batch, Views

ROOT = Path(__file__).parents[1]
PACKAGE, NOTES = ROOT / "rbve", ROOT / "docs" / "notes"
BOOTSTRAPS = {
    "state": "the observation after the decision (of n steps, after the n-th)",
    "pair": "the next decision as the log holds it; decisions without one are dropped",
    "return": "nothing: the return that followed is the target; fragments are dropped",
    "none": "nothing: no values are learned",
}
SOURCES = "../../../rbve"  # from pages in docs/generated/FOLDER
Cell = Any


def table(heads: Sequence[str], lines: Iterable[Sequence[Cell]]) -> str:
    """A Markdown table."""
    rows = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    text = [" | ".join(heads), " | ".join(["---"] * len(heads)), *map(" | ".join, rows)]
    return "".join(f"| {line} |\n" for line in text)


def notes(kind: str, name: str) -> str:
    file = NOTES / kind / f"{name}.md"
    return "\n" + file.read_text(encoding="utf-8") if file.is_file() else ""


def text_block(text: str) -> str:
    return f"```text\n{text.strip(chr(10))}\n```\n"


def split_docstring(doc: str) -> tuple[str, str]:
    """First sentence, and the rest."""
    first, _, rest = inspect.cleandoc(doc).partition("\n")
    return first.rstrip("."), rest.strip("\n")


def comments(kind: type) -> dict[str, str]:
    """Field -> the comment behind it, or on the lines before it, in the source of a class."""
    source = inspect.cleandoc(inspect.getsource(kind))
    found: dict[str, str] = {}
    before: list[str] = []
    field = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.line.strip().startswith(f"{token.string}:"):
            field = token.string
            if before:
                found[field] = " ".join(before)
                before = []
        elif token.type == tokenize.COMMENT:
            said = token.string.lstrip("# ")
            if token.line.strip().startswith("#"):
                before.append(said)
            elif field:
                found[field] = said
    return found


def settings(algorithm: algorithms.Algorithm) -> list[tuple[str, str, str]]:
    """(name, default, meaning) of all numbers and choices."""
    numbers, choices = algorithm.config, algorithm.options
    said: dict[str, str] = {}
    for kind in [*filter(dataclasses.is_dataclass, reversed(choices.__mro__)), numbers]:
        said |= comments(kind)
    values = {**numbers()._asdict(), **dataclasses.asdict(choices())}
    hints = get_type_hints(choices)
    lines = []
    for name, value in values.items():
        allowed = get_args(hints[name]) if get_origin(hints.get(name)) is not None else ()
        among = f" ({', '.join(map(str, allowed))})" if allowed else ""
        lines.append((f"`{name}`", f"`{value}`", said.get(name, "") + among))
    return lines


def logged(algorithm: algorithms.Algorithm) -> list[str]:
    """Names of the metrics that a loss gives, found by tracing it on shapes alone."""
    options, config = algorithm.options(), algorithm.config()

    def traced(key: jax.Array, obs: jax.Array) -> dict[str, jax.Array]:
        network = networks.build((4,), 3, algorithm.head, options, (8,), key)
        views = Views(network(obs, key), network(obs, key), network(obs, key))
        views = views._replace(target_at_s=lambda: network(obs, key))
        zeros, ids = jnp.zeros(2), jnp.zeros(2, jnp.int32)
        batch = Batch(ids, zeros, zeros, ids, zeros > 0, zeros, jnp.ones(()), jnp.ones(2))
        return algorithm.loss(views, batch, config, options, ops.TD(), key)[1]

    return list(jax.eval_shape(traced, jax.random.key(0), jnp.zeros((2, 4))))


def algorithm_page(name: str) -> str:
    algorithm = algorithms.load(name)
    source = PACKAGE / "algorithms" / f"{name}.py"
    title, rest = split_docstring(ast.get_docstring(ast.parse(source.read_text("utf-8"))) or name)
    own = settings(algorithm)
    explained = metric_words()
    said = [*logged(algorithm), "loss", "grad_norm"]
    if unknown := [each for each in said if each not in explained]:
        raise ValueError(f"docs/notes/metrics.md does not explain {', '.join(unknown)} of {name}")
    setting = next((f" --set {n.strip('`')}={v.strip('`')}" for n, v, _ in own), "")
    head = algorithm.head if isinstance(algorithm.head, tuple) else (algorithm.head,)
    heads = ", ".join(f"`{getattr(each, 'head', each)}`" for each in head)
    measured = docs_results.algorithm(name)
    return "\n".join(
        [
            f"# {METHODS.get(name, (name, ''))[0]}\n",
            f"`{name}`: {title}. {{download}}`Source <{SOURCES}/algorithms/{name}.py>`.\n",
            text_block(rest),
            "```bash\n" + f"rbve train DATA --algorithm {name}{setting} --out runs\n```\n",
            f"Targets bootstrap from {BOOTSTRAPS[algorithm.bootstrap]}. Heads: {heads}.\n",
            "## Settings\n",
            "Numbers may differ between members of one sweep. What all methods share, such as the "
            "learning rate, is in `rbve train --help`.\n" if own else "None of its own.\n",
            table(("setting", "default", "meaning"), own) if own else "",
            "## Metrics\n",
            "Rows of a run hold, as `train/NAME`, the mean over the updates of an interval:\n",
            table(("metric", "what it is, and what it should look like"),
                  [(f"`{each}`", explained[each]) for each in said]),
            "Beside them stand [the figures of evaluations](../metrics.md).\n",
            notes("algorithms", name),
            f"## Measured\n\n{measured}" if measured else
            "## Measured\n\nNothing in `results/`: it is not compared in the paper.\n",
        ]
    )  # fmt: skip


def metric_words() -> dict[str, str]:
    """What docs/notes/metrics.md says of each metric of a loss: | `name` | words |."""
    lines = (NOTES / "metrics.md").read_text(encoding="utf-8").splitlines()
    rows = (re.fullmatch(r"\| `(\w+)` \| (.+) \|", line) for line in lines)
    return {row[1]: row[2] for row in rows if row}


def metrics_page() -> str:
    """Figures of evaluations, by what they are computed from."""
    parts = ["# Metrics\n", notes("pages", "metrics")]
    places = {
        "metrics": "## In an environment\n",
        "offline": "## Without one\n",
    }
    for folder, heading in places.items():
        lines = []
        for module in metric.modules(f"rbve.evaluation.{folder}"):
            own: metric.Metric = module.METRIC
            title, rest = split_docstring(module.__doc__ or "")
            words = " ".join(f"{title}. {rest}".split())
            lines.append((f"`{own.name}`", words, own.better, own.statistic))
        parts += [heading, table(("row", "what it is", "better is", "over runs"), lines)]
    parts += ["## Of training\n", "As `train/NAME`, means over an interval's updates.\n"]
    parts += [table(("row", "what it is"), [(f"`{k}`", v) for k, v in metric_words().items()])]
    return "\n".join(parts)


def estimator_page(name: str) -> str:
    module = estimators.load(name)
    own: estimators.Estimator = module.ESTIMATOR
    title, rest = split_docstring(module.__doc__ or name)
    steps = {"any": "any log", "one": "logs of one decision an episode", "several": "longer logs"}
    facts = [
        ("in tables", own.label),
        ("on logs of one decision an episode", own.one_step_label or own.label),
        ("suits", steps[own.steps]),
        ("multiplies by π / μ", "yes" if own.weights else "no"),
        ("reads a fitted Q̂", "yes" if own.values else "no"),
        ("its interval tells how far it may be off", "yes" if own.interval else "no"),
        ("has nothing to make up for weights that do not average 1", "yes" if own.unheld else "no"),
    ]  # fmt: skip
    return "\n".join(
        [
            f"# {own.label}\n",
            f"`rbve/off_policy/estimators/{name}.py`: {title}.\n",
            text_block(rest) if rest else "",
            table(("", ""), facts),
            notes("estimators", name),
            "Where the truth is known: [what a policy is worth](../../ope.md#measured).\n",
        ]
    )


def format_page(name: str) -> str:
    module = formats.module(name)
    title, rest = split_docstring(module.__doc__ or name)
    suffix = getattr(module, "SUFFIX", None)
    options = getattr(module, "Options", None)
    writes = "yes" if hasattr(module, "write") else "no"
    parts = [
        f"# {name}\n",
        f"{title}.\n",
        f"{rest}\n" if rest else "",
        table(("", ""), [("read", "yes"), ("written", writes),
                         ("suffix it is written with", f"`{suffix}`" if suffix else "–")]),
    ]  # fmt: skip
    if options is not None:
        said = {k: v for kind in reversed(options.__mro__) if dataclasses.is_dataclass(kind)
                for k, v in comments(kind).items()}  # fmt: skip
        lines = [
            (f"`--{each.name.replace('_', '-')}`", said.get(each.name, ""))
            for each in dataclasses.fields(options)
        ]
        parts += ["## Options\n", "Flags of `rbve convert` and `rbve inspect`, keywords of "
                  "`rbve.convert`, `rbve.inspect` and `rbve.load`.\n",
                  table(("option", "meaning"), lines)]  # fmt: skip
    return "\n".join([*parts, notes("formats", name)])


def environment_line(name: str) -> str:
    tree = ast.parse((PACKAGE / "envs" / f"{name}.py").read_text("utf-8"))
    return split_docstring(ast.get_docstring(tree) or name)[0]


def environment_page(name: str) -> str:
    """Read from the text: its package may not be installed."""
    tree = ast.parse((PACKAGE / "envs" / f"{name}.py").read_text("utf-8"))
    title, rest = split_docstring(ast.get_docstring(tree) or name)
    example = f"{name}:{envs.ADAPTERS[name]}" if name in envs.ADAPTERS else name
    return "\n".join(
        [
            f"# {name}\n",
            f"{title}.\n",
            f"{rest}\n" if rest else "",
            f"```bash\nrbve record {example} --policy uniform --out data/{name}\n```\n",
            notes("environments", name),
            "Sizes, packages and limits of all: [environments](../../environments.md).\n",
        ]
    )


def findings() -> list[tuple[str, str, str, str]]:
    """(name, level, why, remedy) of every finding of the audit, from the places that make them."""
    found: dict[str, tuple[str, str, str, str]] = {}
    for file in sorted((PACKAGE / "audit").glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        known = assigned(ast.Module([n for n in tree.body if isinstance(n, ast.Assign)], []))
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            local = assigned(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                    words = [said(each, known | local) for each in node.args]
                    levels = [k.value for k in node.keywords if k.arg == "level"]
                    hard = any(isinstance(k, ast.Constant) and k.value == "stop" for k in levels)
                    verdict = WORDS["stop" if hard else "look"]
                    found.setdefault(words[0], (words[0], verdict, words[2], words[3]))
    return sorted(found.values(), key=lambda each: (each[1] != WORDS["stop"], each[0]))


def assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Name -> every expression that it is given."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    return found


def said(node: ast.expr, known: dict[str, list[ast.expr]]) -> str:
    """The words of an expression; what is filled in stands as …."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            said(each, known) if isinstance(each, ast.Constant) else "…" for each in node.values
        )
    if isinstance(node, ast.IfExp):
        return f"{said(node.body, known)}; or: {said(node.orelse, known)}"
    if isinstance(node, ast.Name) and node.id in known:
        others = {name: values for name, values in known.items() if name != node.id}
        words = [said(each, others) for each in known[node.id]]
        return "; or: ".join(dict.fromkeys(each for each in words if each != "…")) or "…"
    return "…"


def findings_page() -> str:
    lines = [
        (f"**{name if name != '…' else 'what a reader refuses'}**", level, why, remedy)
        for name, level, why, remedy in findings()
    ]
    return "\n".join(
        [
            "# Findings of the audit\n",
            notes("pages", "audit"),
            table(("finding", "verdict", "why it matters", "what to do"), lines),
        ]
    )
