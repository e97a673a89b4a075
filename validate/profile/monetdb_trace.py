"""MonetDB's TRACE of a query: what each of its instructions took, as mclient prints it.

Any of mclient's formats will do. An instruction works on whole columns, and is an operator and one
task; where the plan cuts a table into slices, there is one for each, and they run side by side. How
many rows a column has stands in the arguments, as in ``X_3=[1200000]:bat[:int]``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ...inputs import InputError
from .plans import MOST, Names, Plan, PlanOperator, wrong

STATEMENT = re.compile(
    r"(?m)^[^\d\n]*\d+[^\w\n]+?(?:barrier )?\(?([A-Z]_\d+=.*?)\)? := (\w+)\.([^\s(]+)\((.*)\);"
)
COLUMN = re.compile(r"([A-Z]_\d+)=\[([^\]]*)\]:bat\[:(\w+)\]")
VALUE = re.compile(r"([A-Z]_\d+)=")
WORD = re.compile(r'"([^"\\]+)\\?"+:str')
OF_TABLES = {"bind", "bind_idxbat", "tid"}  # columns of a table, and the rows that it has
VALUE_BYTES = {"bit": 1, "bte": 1, "sht": 2, "int": 4, "flt": 4, "date": 4, "hge": 16, "uuid": 16}
OTHERS_BYTES = 8  # lng, dbl, oid, timestamp; of str the offset
EXPECTED = "what TRACE prints of a query: microseconds and instructions"


def is_monetdb(head: str) -> bool:
    """Whether a file that begins so is one."""
    return STATEMENT.search(head) is not None


def read_monetdb(path: Path, text: str) -> Plan:
    """The plan, an instruction an operator; raises InputError where one is cut off, or none works
    on a column."""
    for number, line in enumerate(text.splitlines(), 1):
        if ":bat[" in line and ");" not in line:
            raise InputError("cut off", str(path), number, token=line[:40], expected=EXPECTED)
        for column, rows, _ in COLUMN.findall(line):
            if not rows.isdecimal() or float(rows) > MOST:
                raise wrong(column, str(path), rows, f"rows from 0 to {MOST:g}", number)
    if text.count("querylog.define(") > 1:
        raise InputError("several queries", str(path), expected=EXPECTED)
    found = tuple(_operators(text))
    if not found:
        raise InputError("no instruction works on a column", str(path), expected=EXPECTED)
    return Plan(str(path), "monetdb", found, ("each instruction is one task, on any machine",))


def _operators(text: str) -> Iterator[PlanOperator]:
    names, made_by, table_of = Names(), dict[str, str](), dict[str, str]()
    for results, module, function, arguments in STATEMENT.findall(text):
        made, taken = COLUMN.findall(results), COLUMN.findall(arguments)
        words = WORD.findall(arguments)  # of these instructions: schema, table, column
        if module == "sql" and function in OF_TABLES and len(words) > 1:
            table_of |= dict.fromkeys((column for column, *_ in made), words[1])
        if not taken or module in ("sql", "language"):
            continue
        name = names(function)
        tables = (table_of[column] for column, *_ in taken if column in table_of)
        inputs = (made_by[value] for value in VALUE.findall(arguments) if value in made_by)
        yield PlanOperator(
            name=name,
            kind=function,
            rows=float(taken[0][1]),
            results=float(made[0][1]) if made else 1.0,
            row_bytes=float(sum(VALUE_BYTES.get(kind, OTHERS_BYTES) for *_, kind in made)),
            inputs=tuple(dict.fromkeys(inputs)),
            table=next(tables, None),
            parallel=1,
        )
        made_by |= dict.fromkeys(VALUE.findall(results), name)
