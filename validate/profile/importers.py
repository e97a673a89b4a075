"""Who reads which file of counts or plans. One more kind of file is one more line here."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...inputs import InputError
from ...inputs.json_text import read_json
from ...inputs.text_lines import check_regular
from .callgrind import is_callgrind, read_callgrind
from .clickhouse_log import is_clickhouse, read_clickhouse
from .counts import CallGraph, Totals
from .duckdb_plan import is_duckdb, read_duckdb
from .monetdb_trace import is_monetdb, read_monetdb
from .perf_levels import Levels, is_perf_levels, read_perf_levels, with_misses
from .perf_script import is_perf_script, read_perf_script, with_instructions
from .perf_stat import is_perf_stat, read_perf_stat
from .plans import Plan
from .postgres_plan import is_postgres, read_postgres

Profile = CallGraph | Totals | Levels | Plan
HEAD = 4_096
SIZE_MAX = 2**30


@dataclass(frozen=True)
class Importer:
    """``name``: in words; ``is_one`` of the beginning of a text, or of a JSON document."""

    name: str
    is_one: Callable[[Any], bool]
    read: Callable[[Path, Any], Profile]


TEXTS = (
    Importer("ClickHouse's system.processors_profile_log", is_clickhouse, read_clickhouse),
    Importer("MonetDB's TRACE", is_monetdb, read_monetdb),
    Importer("an output file of callgrind", is_callgrind, read_callgrind),
    Importer("the output of perf stat -x", is_perf_stat, read_perf_stat),
    Importer("the output of perf script", is_perf_script, read_perf_script),
    Importer("perf mem report or perf c2c report", is_perf_levels, read_perf_levels),
)
DOCUMENTS = (
    Importer("DuckDB's profile as JSON", is_duckdb, read_duckdb),
    Importer("PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON)", is_postgres, read_postgres),
)


@dataclass(frozen=True)
class Found:
    """All that the files of one query tell: its plan, counts by function, totals."""

    plan: Plan | None
    graphs: tuple[CallGraph, ...]
    totals: Totals | None


def read_profiles(paths: Sequence[Path], prefetched: Sequence[Path] = ()) -> Found:
    """What the files tell together; ``prefetched``: counts whose last cache had a prefetcher, which
    callgrind does not write down. Raises InputError."""
    found = [read_profile(path) for path in paths]
    for path in prefetched:
        graph = read_profile(path)
        if not isinstance(graph, CallGraph):
            raise InputError("no caches", str(path), expected="an output file of callgrind")
        found.append(replace(graph, prefetched=True))
    plans = [each for each in found if isinstance(each, Plan)]
    totals = [each for each in found if isinstance(each, Totals)]
    levels = [each for each in found if isinstance(each, Levels)]
    for several in (plans, totals, levels):
        if len(several) > 1:
            raise InputError(
                "a second file of the same kind", several[1].source, expected="one query at a time"
            )
    total = totals[0] if totals else None
    if levels and total is None:
        raise InputError("levels of loads alone", levels[0].source, expected="perf stat -x, too")
    if levels and total is not None:
        total = with_misses(total, levels[0])
    graphs = (with_instructions(each, total) for each in found if isinstance(each, CallGraph))
    return Found(plans[0] if plans else None, tuple(graphs), total)


def read_profile(path: Path) -> Profile:
    """What one file tells, whichever kind it is; raises InputError."""
    text = _text(path)
    known = "; ".join(importer.name for importer in (*TEXTS, *DOCUMENTS))
    for importer in TEXTS:
        if importer.is_one(text[:HEAD]):
            return importer.read(path, text)
    if text.lstrip()[:1] in ("{", "["):
        document = read_json(path, "a profile", known)
        for importer in DOCUMENTS:
            if importer.is_one(document):
                return importer.read(path, document)
        first = json.dumps(document)[:40]
        raise InputError("not a known profile", str(path), token=first, expected=known)
    first = text.partition("\n")[0]
    raise InputError("not a known profile", str(path), 1, None, first, known)


def _text(path: Path) -> str:
    try:
        check_regular(path)
        if path.stat().st_size > SIZE_MAX:
            raise InputError(f"larger than {SIZE_MAX:,} bytes", str(path))
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", str(path)) from None
