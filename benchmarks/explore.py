"""How long the page of ``numatwin explore`` waits for a move: another value of a field.

Processor time of the server for each move (scenario, flow plane, machine's picture), by scenario;
the median and the worst of the moves. Arguments: other scenarios.
"""

import json
import statistics
import sys
import time

from numatwin.reports.explore.explorer import Choice, Explorer
from numatwin.sim.studies.base import Base

SCENARIOS = tuple(sys.argv[1:]) or ("eris-fig8-amd", "eris-fig1", "nam-fig6-rsi", "hana-fig11-low")
MOVES = 25


def main() -> None:
    for name in SCENARIOS:
        explorer = Explorer(Base(name))
        fields = [field for field in explorer.fields(Choice()) if not isinstance(field.value, str)]
        took_ms = []
        for k in range(MOVES):
            field = fields[k % 5]
            assert not isinstance(field.value, str)
            moved = Choice((field.setting(field.value * 2.0 ** ((k + 1) / MOVES)),))
            began = time.process_time()
            explorer.moment(moved)
            took_ms.append(1e3 * (time.process_time() - began))
        for what, value in (("median", statistics.median(took_ms)), ("worst", max(took_ms))):
            line = {"name": f"explore {name}, a move, {what}", "value": round(value, 1)}
            print(json.dumps(line | {"unit": "ms", "versus": None, "ratio": None}), flush=True)


if __name__ == "__main__":
    main()
