"""``numactl``'s options as settings of a scenario."""

import shlex
from collections.abc import Iterator

from ...inputs import InputError
from ...inputs.number_sets import listed_numbers

SOURCE = "--numactl"
# What options are called; by which policies those of memory go.
POLICIES = {
    "membind": "bind",
    "preferred": "preferred",
    "preferred-many": "preferred",
    "interleave": "interleave",
    "weighted-interleave": "weighted",
    "localalloc": "local",
}
OPTIONS = (*POLICIES, "cpunodebind")
BY_LETTER = dict(zip("mpPiwlN", OPTIONS, strict=True))
# Options of numactl that say nothing about where a simulated process runs, with what does here.
WITHOUT_MEANING = {
    **dict.fromkeys(
        ("C", "physcpubind"), "threads are counted by node: --cpunodebind, system.threads"
    ),
    **dict.fromkeys(("b", "balancing"), "pages do not move by themselves: no --balancing"),
    **dict.fromkeys(("a", "all"), "a run has all nodes of its machine: no --all"),
    **dict.fromkeys(("s", "show"), "no --show; 'numatwin machine show' lists nodes"),
    **dict.fromkeys(("H", "hardware"), "no --hardware; 'numatwin machine show' lists nodes"),
}


def numactl_settings(text: str) -> list[str]:
    """The settings ``path=value`` that the options of ``text`` mean, as for ``--set``.

    Raises InputError for an option without meaning here, and for two policies of memory.
    """
    found: dict[str, str] = {}
    for option, argument in _options(text):
        if option == "cpunodebind":
            if argument != "all":
                found["system.nodes"] = _listed(argument)
            continue
        if "system.memory" in found:
            raise _error(f"--{option}", "one policy of memory")
        found["system.memory"] = _policy(option, argument)
    if not found:
        raise _error(text, "options such as --membind=1 --cpunodebind=0")
    return [f"{path}={value}" for path, value in found.items()]


def _policy(option: str, argument: str) -> str:
    policy = POLICIES[option]
    if option == "localalloc" or (policy in ("bind", "preferred") and argument == "all"):
        return "{policy: local}"
    if policy == "weighted":
        if ":" not in argument:
            raise _error(argument, "weights by node, such as -w 0:9,1:1 (Linux keeps them apart)")
        return f'{{policy: weighted, weights: "{argument}"}}'
    if argument == "all":
        return f"{{policy: {policy}}}"
    ids = _listed(argument)
    if option == "preferred" and ids.count(","):
        raise _error(argument, "one node, or --preferred-many")
    return f"{{policy: {policy}, nodes: {ids}}}"


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Long names and arguments, in the order in which they stand."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise _error(text, "a closing quotation mark") from None
    if words[:1] == ["numactl"]:
        words = words[1:]
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise _error(word, "options alone, without a command")
        name, _, argument = word.lstrip("-").partition("=")
        if not word.startswith("--"):  # an argument may follow a letter at once, as in -m1
            name, argument = word[1], word[2:].removeprefix("=")
        if name in WITHOUT_MEANING:
            raise _error(word, WITHOUT_MEANING[name])
        option = BY_LETTER.get(name, name)
        if option not in OPTIONS:
            raise _error(word, ", ".join(f"--{option}" for option in OPTIONS))
        if option == "localalloc":
            if argument:
                raise _error(word, "no argument")
        elif not argument:
            if not words:
                raise _error(word, "nodes, such as 0,2-3 or all")
            argument = words.pop(0)
        yield option, argument


def _listed(argument: str) -> str:
    """``0,2-3`` as ``[0, 2, 3]``."""
    try:
        return f"[{', '.join(map(str, listed_numbers(argument)))}]"
    except ValueError:
        raise _error(argument, "node ids, such as 0,2-3 or all") from None


def _error(token: str, expected: str) -> InputError:
    return InputError(
        "not an option that has a meaning here", SOURCE, token=token, expected=expected
    )
