"""Numbers, names and nested facts as text; labels that tell runs apart."""

import dataclasses

import pytest
from synthetic_records import phased_record, steady_record

from numatwin.reports.facts import ROWS_MAX, fact_rows
from numatwin.reports.runs import moved_bytes, recoveries_of, runs_of
from numatwin.reports.words import (
    all_of,
    count,
    figure_text,
    label,
    label_of_row,
    listing,
    percent,
    plural,
    rate,
    seconds,
    si,
    signed_percent,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rate(2.3149e9, "lookup"), "2.31 G lookups/s"),
        (rate(12.0, "scan"), "12 scans/s"),
        (si(122.9e9, "B/s", 4), "122.9 GB/s"),
        (si(1e9, "B/s"), "1.00 GB/s"),
        (si(145.2e6, "/s"), "145 M/s"),
        (si(999.96e6, "B/s"), "1.00 GB/s"),
        (si(240e9, ""), "240 G"),
        (figure_text(204.8e3, "ns"), "205 µs"),
        (figure_text(0.5, "1"), "50%"),
        (figure_text(145.2e6, "/s"), "145 M/s"),
        (si(0.0, "B"), "0 B"),
        (si(0.25, "J"), "0.25 J"),
        (si(-5e3, "W"), "-5.00 kW"),
        (si(None, "B"), "–"),
        (si(float("nan"), "B"), "–"),
        (si(float("inf"), "B"), "–"),
        (seconds(110.0), "110 s"),
        (seconds(8.1234), "8.12 s"),
        (seconds(0.35), "350 ms"),
        (seconds(1.2e-7), "120 ns"),
        (seconds(3e-12), "0.003 ns"),
        (seconds(0.99999), "1 s"),
        (seconds(0.0), "0 s"),
        (seconds(None), "–"),
        (percent(0.936, 1), "93.6%"),
        (percent(0.42), "42%"),
        (percent(0.0), "0%"),
        (percent(0.004), "0.4%"),
        (signed_percent(0.062), "+6.2%"),
        (signed_percent(-0.31), "−31%"),
        (signed_percent(None), "–"),
        (plural("lookup"), "lookups"),
        (plural("country"), "countries"),
        (plural("by-region"), "by-region"),
        (plural("batch"), "batches"),
        (plural("key"), "keys"),
        (plural("access"), "access"),
        (plural("q1"), "q1"),
        (plural(""), ""),
        (count(1, "run"), "1 run"),
        (count(12_345, "run"), "12\u202f345 runs"),
        (listing(["a", "b", "c"]), "a, b and c"),
        (listing(["a"]), "a"),
        (all_of(2, "run"), "Both runs"),
        (all_of(3, "run"), "All 3 runs"),
    ],
)
def test_written(text: str, expected: str) -> None:
    assert text == expected


def test_labels_hold_no_tag_no_entity_no_template() -> None:
    assert label('<a href="x">&amp; %{y}') == '&lt;a href="x"&gt;&amp;amp; %&#123;y}'
    assert label("two\nlines\x00") == "two lines "
    assert label("abcdef", 4) == "abc…"
    assert label("<<<<<", 3) == "&lt;&lt;…"


def test_long_labels_of_rows_take_two_lines() -> None:
    assert label_of_row("memory bandwidth", 34) == "memory bandwidth"
    text = "speed of memory access (1 / latency)"
    assert label_of_row(text, 34) == "speed of memory<br>access (1 / latency)"
    assert label_of_row("<b> & some other words of a long name", 34).startswith(
        "&lt;b&gt; &amp; some"
    )
    long = label_of_row("word " * 40, 34)
    assert long.count("<br>") == 1
    assert long.endswith(" …")


def test_facts() -> None:
    rows = fact_rows(
        {
            "cache": {"hit_rate": 0.31234, "size_bytes": 6.29e6},
            "stall_ns": 1500,
            "traffic_Bps": [1e9, 2e9],
            "bytes_per_s": 3.0,
            "loads": [0.1] * 9 + [0.6],
            "steps": [{"at_s": 1.0}, {"at_s": None}],
            "on": True,
            "none": {},
            "big": 512_000_000,
        }
    )
    assert rows == [
        ("cache · hit rate", "0.3123"),
        ("cache · size", "6.290 MB"),
        ("stall", "1.5 µs"),
        ("traffic", "1.000 GB/s, 2.000 GB/s"),
        ("bytes per s", "3"),
        ("loads", "10 values from 0.1 to 0.6, mean 0.15"),
        ("steps · 0 · at", "1 s"),
        ("steps · 1 · at", "–"),
        ("on", "yes"),
        ("none", "–"),
        ("big", "512.0 M"),
    ]


def test_facts_are_cut() -> None:
    rows = fact_rows({str(k): k for k in range(10_000)})
    assert len(rows) == ROWS_MAX + 1
    assert rows[-1] == ("…", "more in record.json")


def test_runs_are_told_apart_by_what_differs() -> None:
    record = steady_record()
    other = dataclasses.replace
    assert [run.label for run in runs_of([record])] == ["none"]
    assert [run.label for run in runs_of([record, record])] == ["none (1)", "none (2)"]
    assert [run.label for run in runs_of([record, other(record, plane="event")])] == [
        "flow",
        "event",
    ]
    three = [record, other(record, policy="ma-1"), other(record, policy="ma-1", seed=2)]
    labels = [run.label for run in runs_of(three)]
    assert labels == ["none · seed 1", "ma-1 · seed 1", "ma-1 · seed 2"]
    sets = [other(record, settings={"horizon": h, "machine": "m"}) for h in ("60 s", "110 s")]
    labels = ["none · horizon 60 s", "none · horizon 110 s"]
    assert [run.label for run in runs_of(sets)] == labels
    # A run with a policy of its own needs no more; settings beyond the rows that are shown count.
    many = [
        other(one, settings={"keys": {str(k): k for k in range(2 * ROWS_MAX)}} | dict(one.settings))
        for one in sets
    ]
    assert [run.label for run in runs_of([*many, other(record, policy="ma-1")])] == [
        *labels,
        "ma-1",
    ]


def test_many_runs_differ_in_colour_or_dash() -> None:
    records = [dataclasses.replace(steady_record(), seed=seed) for seed in range(20)]
    assert len({(run.colour, run.dash) for run in runs_of(records)}) == 20


def test_levels_are_shared_where_the_changes_are() -> None:
    runs = runs_of([phased_record("none"), phased_record("ma-8")])
    shared = recoveries_of(runs, "lookup")
    assert [one.level for one in shared["none"]] == [one.level for one in shared["ma-8"]]
    assert all(one.recovery_s is None for one in shared["none"])
    still = dataclasses.replace(
        phased_record("none"), control_events=phased_record("none").control_events[:3]
    )
    own = recoveries_of(runs_of([still, phased_record("ma-8")]), "lookup")
    assert all(one.level == one.final for ones in own.values() for one in ones)


def test_bytes_moved() -> None:
    assert moved_bytes(phased_record("ma-8")) == pytest.approx(15 * 1.2e9)
    assert moved_bytes(phased_record("none")) is None
