"""Names made of files' names."""

import pytest

from numatwin.inputs.file_names import without_endings


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("server.yaml", "server"),
        ("server.tar.bz2", "server"),
        ("server.TAR.GZ.yml", "server"),
        ("server-2.4.xml", "server-2.4"),
        ("ma-8", "ma-8"),
        ("a.b.tgz", "a.b"),
        (".yaml", ".yaml"),
    ],
)
def test_endings(file: str, name: str) -> None:
    assert without_endings(file) == name
