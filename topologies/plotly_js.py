"""The part of Plotly that pages need, as text: they work without a network."""

import gzip
from pathlib import Path

# The part that draws lines, bars and heat maps, as its makers publish it (MIT license):
# `npm pack plotly.js-cartesian-dist-min@4.1.1`, plotly-cartesian.min.js, then `gzip -9n`.
# HASH is what a page's policy knows the unpacked script by (a test works it out).
FILE = Path(__file__).parent / "plotly-cartesian.min.js.gz"
HASH = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno="


def packed_plotly() -> bytes:
    """The script, by gzip; a browser unpacks it."""
    return FILE.read_bytes()


def plotly_js() -> str:
    """The script, to stand in a page before what draws by it."""
    return gzip.decompress(packed_plotly()).decode("utf-8")
