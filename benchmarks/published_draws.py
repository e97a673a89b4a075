"""Predicts published results with draws of all that their sources leave open.

``--write`` stores them (``validate/published_draws.json``); ``numatwin published`` weighs them by
the other results of a source. One JSON object a line: seconds for a source; of what is stored, how
many results lie within 25% and in their 90% intervals, before evidence and given the others.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict

from numatwin.inputs import write_text_atomically
from numatwin.validate.published_draws import STORED, Drawn, predicted, sources, stored
from numatwin.validate.published_given import shares

# As many as take some minutes of each.
COUNTS = {"eris": 128, "nam": 32, "gru": 32, "hana": 32}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="predict all again")
    parser.add_argument("--only", choices=sources(), help="of this source")
    options = parser.parse_args()
    if options.write:
        chosen = [options.only] if options.only else sources()
        known = json.loads(STORED.read_text())["rows"] if STORED.exists() else []
        rows = [row for row in known if row["id"].partition("-")[0] not in chosen]
        for source in chosen:
            begin_s = time.perf_counter()
            rows += [_plain(one) for one in predicted(source, COUNTS.get(source, 64))]
            took_s = time.perf_counter() - begin_s
            name = f"published_draws/{source}"
            print(json.dumps({"name": name, "value": round(took_s, 1), "unit": "s"}), flush=True)
        text = ",\n".join(json.dumps(row) for row in rows)
        by = "python benchmarks/published_draws.py --write"
        write_text_atomically(STORED, f'{{"by": "{by}", "rows": [\n{text}\n]}}\n')
        stored.cache_clear()
    for name, share in shares().items():
        line = {"name": f"published_draws/{name}", "value": round(share, 3), "unit": "1"}
        line |= {"versus": "docs/published.md", "ratio": None}
        print(json.dumps(line), flush=True)


def _plain(one: Drawn) -> dict[str, object]:
    draws = [None if value != value else float(f"{value:.5g}") for value in one.draws.tolist()]
    return {"id": one.id, "of": asdict(one.of), "blind": one.blind, "draws": draws}


if __name__ == "__main__":
    main()
