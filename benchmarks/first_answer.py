"""What a first answer costs: processor seconds of ``numatwin run --on flow``, and by part.

The median of several runs, scenarios by turns. Parts are those of one process of its own that does
the same step by step: the interpreter, libraries, numatwin's own modules, reading the files, the
prediction, printing; and what comes after the answer: the effects of assumptions, libraries and
modules of record and report, record and report. Arguments: other scenarios; ``--repeat``: runs of
each.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

SCENARIOS = ("eris-fig8-amd", "hana-fig10", "nam-fig6-rsi")
ASKED_S = 0.6  # from the shell to the answer
JUDGED = ("in all", "until the answer")
STEPS = """
import contextlib, io, json, sys, time
took = {}
def done(part):
    took[part] = time.process_time() - sum(took.values())
done("interpreter")
import numpy, pydantic, rich.console, rich.table, typer, yaml
done("libraries")
import numatwin.cli.app, numatwin.cli.run, numatwin.cli.output, numatwin.cli.record_facts
import numatwin.sim.run.runner as runner
from numatwin.sim.run.scenario import load_scenario
done("own modules")
scenario = load_scenario(sys.argv[1], plane="flow")
done("reading files")
record = runner.run_scenario(scenario)
done("prediction")
with contextlib.redirect_stdout(io.StringIO()):
    numatwin.cli.output.show(numatwin.cli.record_facts.record_parts(record))
done("printing")
took["until the answer"] = sum(took.values())
began = time.process_time()
def after(part):
    global began
    took[part], began = time.process_time() - began, time.process_time()
record = runner.with_effects(record, scenario)
after("effects of assumptions")
import jinja2, pyarrow.parquet, numatwin.reports
after("modules of record and report")
record.save(sys.argv[2])
after("record")
numatwin.reports.write_report([record], sys.argv[2] + "/report.html")
after("report")
print(json.dumps(took))
"""


def whole_s(scenario: str, folder: str) -> float:
    """Of the command itself."""
    command = [sys.executable, "-m", "numatwin", "run", scenario, "--on", "flow", "--out", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return usage.ru_utime + usage.ru_stime


def parts_s(scenario: str, folder: str) -> dict[str, float]:
    """Of the same, step by step."""
    command = [sys.executable, "-c", STEPS, scenario, folder]
    found: dict[str, float] = json.loads(subprocess.check_output(command))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.repeat):
            for name in options.scenarios:
                took = {"in all": whole_s(name, folder), **parts_s(name, folder)}
                for part, seconds in took.items():
                    found.setdefault((name, part), []).append(seconds)
    for (name, part), each in found.items():
        asked, seconds = part in JUDGED, median(each)
        line = {
            "name": f"first answer of {name}, {part}",
            "value": round(seconds, 3),
            "unit": "CPU-s",
            "versus": f"{ASKED_S} s" if asked else None,
            "ratio": round(seconds / ASKED_S, 2) if asked else None,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
