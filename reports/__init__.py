"""HTML reports from records."""

from .report import report_html, write_report

__all__ = ["report_html", "write_report"]
