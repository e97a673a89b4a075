"""``numatwin report``: one HTML file from one or several records."""

from pathlib import Path
from typing import Annotated

from .files import Records, check_file, record_folders
from .options import option
from .output import show


def report(
    records: Records,
    out: Annotated[Path, option("FILE", "The HTML file to write.")] = Path("report.html"),
) -> None:
    """Write a report that opens offline in any browser."""
    from ..reports import write_report
    from ..sim.run.record import load_record

    check_file(out, ".html", ".htm")
    loaded = [load_record(path) for path in record_folders(records)]
    show([str(write_report(loaded, out))])
