"""Small study files for tests."""

from pathlib import Path

SMALL = """\
name: small
scenario: eris-fig8-amd
factors:
  system.buffer_commands: [16, 64, 256]
  machine.link_types.ht-full.bandwidth: {from: 4 GB/s, to: 12 GB/s, steps: 3}
  system.nodes: [4, 8]
constraints: ["utilisation.link.busiest < 80%"]
objective: maximise throughput.lookup per cost
prices: {currency: EUR, default: {per_node: 1000, per_GB: 5, per_port: 100, fixed: 2000}}
"""


def study_file(folder: Path, text: str = SMALL, name: str = "study.yaml") -> Path:
    """The file, written."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
