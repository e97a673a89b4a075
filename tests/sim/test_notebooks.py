"""Records show themselves in notebooks, and names in them stay text; for machines see
tests/docs/test_notebook.py."""

import dataclasses
import xml.etree.ElementTree as ElementTree

from numatwin import load_scenario, run_scenario


def test_a_record_is_a_table() -> None:
    record = run_scenario(load_scenario("eris-fig8-intel"))
    rows = ElementTree.fromstring(record._repr_html_())
    shown = {row[0].text: row[1].text for row in rows}
    assert shown["machine"] == "intel-4s-qpi"
    assert shown["lookup/s"] == f"{record.throughput['lookup']:,.4g}"
    assert shown["lookup: limited by"] == record.why["lookup"].resource
    hostile = dataclasses.replace(record, title="<script>alert(1)</script>")
    assert "<script>" not in hostile._repr_html_()
