"""The TPC-H-like mix follows from the specification."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from numatwin.workloads import load_workload
from numatwin.workloads.catalogue import BUNDLED

TOOL = Path(__file__).parents[2] / "tools" / "tpch.py"
tpch = SimpleNamespace(**runpy.run_path(str(TOOL)))


@pytest.mark.parametrize("scale", [1, pytest.param(100, marks=pytest.mark.sweep)])
def test_the_bundled_files_are_what_the_tool_writes(scale: int) -> None:
    assert (BUNDLED / f"tpch-{scale}.yaml").read_text(encoding="utf-8") == tpch.written(scale)


def test_rows_are_those_of_the_specification() -> None:
    """Clause 4.2.5.1, at scale factor 1."""
    rows = {name: stored.rows for name, stored in load_workload("tpch-1").objects.items()}
    assert rows == {
        "lineitem": 6_001_215,
        "orders": 1_500_000,
        "customer": 150_000,
        "part": 200_000,
        "supplier": 10_000,
        "partsupp": 800_000,
        "nation": 25,
        "region": 5,
    }


def test_filters_let_through_what_the_validation_output_counts() -> None:
    """Answer sets of the benchmark's validation queries at scale factor 1 (clause 2.1.3.5).

    Q1 counts 1,478,493 + 38,854 + 2,920,374 + 1,478,870 line items; Q12 counts 6,202 + 9,324 +
    6,200 + 9,262 late ones. Random data of one seed: they differ by their standard deviation.
    """
    lines = 6_001_215
    counted = 1_478_493 + 38_854 + 2_920_374 + 1_478_870
    assert tpch.shipped(lambda day: day <= tpch.LAST_SHIPPED) * lines == pytest.approx(
        counted, rel=2e-3
    )
    late = 6_202 + 9_324 + 6_200 + 9_262
    assert tpch.late_lines() * 2 / 7 * lines == pytest.approx(late, rel=0.02)


def test_large_orders_have_seven_lines_of_nearly_fifty_pieces() -> None:
    # Six lines of 50 pieces are 300, not more. 57 of 1.5 million orders are large at scale 1.
    assert 40 < tpch.large_orders() * 1_500_000 < 80
