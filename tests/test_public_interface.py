"""``import numatwin``: what it offers, and that it is there at once."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import numatwin
from numatwin.sim import _kernel
from numatwin.sim.systems.registry import systems

README = Path(__file__).parents[1] / "README.md"


def test_everything_that_is_offered_is_there() -> None:
    for name in numatwin.__all__:
        assert getattr(numatwin, name) is not None
        assert name in dir(numatwin)
    with pytest.raises(AttributeError, match="has no attribute 'run_all'"):
        getattr(numatwin, "run_all")  # noqa: B009 (no type checker knows it)


def test_from_a_scenario_to_a_report(tmp_path: Path) -> None:
    scenario = numatwin.load_scenario("eris-fig12-scan", machine="intel-4s-qpi")
    record = numatwin.run_scenario(scenario)
    again = numatwin.load_record(record.save(tmp_path / "record"))
    assert again == record
    assert numatwin.write_report([again], tmp_path / "report.html").exists()
    assert isinstance(scenario, numatwin.Scenario)
    assert isinstance(record, numatwin.Record)
    assert isinstance(numatwin.load_machine("intel-4s-qpi"), numatwin.Machine)
    assert isinstance(numatwin.load_workload("eris-scan-8gb"), numatwin.Workload)
    with pytest.raises(numatwin.InputError, match="unknown machine"):
        numatwin.load_machine("none")


def test_names_and_lists_will_do() -> None:
    record = numatwin.run_scenario("eris-fig12-scan")
    again = numatwin.run_scenario(numatwin.load_scenario("eris-fig12-scan"))
    assert record.figures() == again.figures()
    found = numatwin.compare_records([record, record])
    assert found == numatwin.compare_records(record, record)
    lines = str(found).splitlines()
    assert lines[0].split() == ["eris-fig12-scan,", "none,", "flow"] * 2
    (line,) = (line for line in lines if line.startswith("throughput.scan ↑  "))
    assert line.endswith("/s ×1.00")
    assert line.index("/s ×1.00") > lines[0].rindex("eris-fig12-scan")
    with pytest.raises(numatwin.InputError, match="two records or more"):
        numatwin.compare_records([record])


def test_the_commands_of_all_systems_are_offered() -> None:
    """What a policy file takes and returns, of each family of each system."""
    for system in systems():
        for family in system.families:
            assert family.types
            for kind in family.types:
                assert getattr(numatwin, kind.__name__) is kind


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "report.html").exists()


def test_import_waits_for_no_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import numatwin; dir(numatwin);"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "sys.exit(', '.join(sorted(new - set(sys.stdlib_module_names) - {'numatwin'})) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_name_is_that_of_its_module() -> None:
    assert {*numatwin._MODULES, "__version__"} == set(numatwin.__all__)
    for name, module in numatwin._MODULES.items():
        found = getattr(numatwin, name)
        assert found is getattr(sys.modules[f"numatwin.{module}"], name)


def test_every_public_method_is_explained_where_it_is_declared() -> None:
    """Some class says what the method does; those that implement it need not say so again."""
    explained = {
        name
        for member in vars(_kernel).values()
        if isinstance(member, type)
        for name in vars(member)
    }
    silent: dict[str, str] = {}
    folders = ("numatwin", "topologies", "workloads", "sim", "engine_native", "validate", "reports")
    for path in (path for folder in folders for path in (README.parent / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            for method in node.body:
                if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                    continue
                if ast.get_docstring(method):
                    explained.add(method.name)
                else:
                    silent[method.name] = f"{path}:{method.lineno}: {node.name}.{method.name}"
    assert not [place for name, place in silent.items() if name not in explained]


def test_each_function_tells_its_parameters_result_and_errors() -> None:
    for name in numatwin.__all__:
        offered = getattr(numatwin, name)
        if not inspect.isfunction(offered):
            continue
        text = inspect.getdoc(offered) or ""
        _, told, after = re.split(r"^Parameters\n-+\n|^Returns\n-+\n", text, flags=re.M)
        heads = [line.partition(" : ")[0] for line in told.splitlines() if line[:1].strip()]
        names = [one.lstrip("*") for head in heads for one in head.split(", ")]
        assert names == [*inspect.signature(offered).parameters], name
        assert re.search(r"^Raises\n-+\nInputError\n    If ", after, re.M), name
