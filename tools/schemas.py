"""Writes the JSON Schema of each kind of file, for editors: schemas.py FOLDER

Bundled files open with a line that names theirs in build/schemas, where 'make setup' writes them.
"""

import json
import sys
from pathlib import Path

from numatwin.cli.schema import Kind, json_schema


def main(folder: Path) -> None:
    """Writes ``folder/machine.json`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in Kind:
        text = json.dumps(json_schema(kind), ensure_ascii=False)
        (folder / f"{kind.value}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
