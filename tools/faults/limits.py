"""Few open files and little memory."""

from __future__ import annotations

from _case import ROLES, TRAIN, Case, demand_clean, demand_equal, demand_one_line

_ABORTED = (127, -6)


def few_open_files(case: Case) -> str:
    """The same results, or a line that says what is too few."""
    return _limited(case, "RLIMIT_NOFILE", (16, 32, 64), "Too many open files")


def little_memory(case: Case) -> str:
    """The same results, or a line that says so, be it the C library's."""
    sizes = tuple(int(each * 2**30) for each in (0.8, 2, 5))
    return _limited(case, "RLIMIT_AS", sizes, "emory|allocate|smaller|thread")


def _limited(case: Case, name: str, sizes: tuple[int, ...], words: str) -> str:
    commands: dict[str, tuple[object, ...]] = {
        "runs": ("train", case.catch(), *TRAIN, "--out"),
        "store": ("convert", *ROLES, "--overwrite", case.offers(100_000)),
        "decisions.parquet": ("predict", case.shipped(), case.offers(100_000), "--out"),
    }
    equal = refused = aborted = 0
    for key, command in commands.items():
        whole = case.whole(key, *command)[0]
        for size in sizes:
            out = case.folder / f"{size}-{key}"
            ended = case.run(*command, out, limits={name: size})
            if ended.code == 0:
                equal += 1
                demand_equal(out, whole)
                continue
            if ended.code in _ABORTED:  # in the C library, which ends the process
                aborted += 1
            else:
                demand_one_line(ended, words)
                refused += 1
            case.done(*command, out)  # without the limit
            demand_equal(out, whole)
    demand_clean(case.folder)
    told = f"{name}: {equal} equal all the same, {refused} refused in a line"
    return told + (f", {aborted} aborted by the C library, without loss" if aborted else "")
