"""The shape of the source tree: sizes, and documents that name what exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from interlock import env
from interlock.errors import CATALOG

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

# The ratchet: what is larger, by how much, and why. An entry that is no longer needed fails the test.
LARGE_FILES: dict[str, tuple[int, str]] = {}
LARGE_FUNCTIONS: dict[str, tuple[int, str]] = {}


def _sources(root: Path) -> list[Path]:
    return sorted((root / "src").rglob("*.py"))


def _functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_files_are_small(root: Path) -> None:
    sizes = {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in _sources(root)}
    large = {name: size for name, size in sizes.items() if size > MAX_FILE_LINES}

    assert large.keys() == LARGE_FILES.keys()
    assert all(size <= LARGE_FILES[name][0] for name, size in large.items())


def test_functions_are_short(root: Path) -> None:
    large = {
        f"{path.relative_to(root)}:{name}": size
        for path in _sources(root)
        for name, size in _functions(path)
        if size > MAX_FUNCTION_LINES
    }

    assert large.keys() == LARGE_FUNCTIONS.keys()
    assert all(size <= LARGE_FUNCTIONS[name][0] for name, size in large.items())


def test_every_folder_of_the_package_stands_in_the_architecture_page(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text()
    folders = {
        path.parent.relative_to(root / "src" / "interlock").as_posix()
        for path in (root / "src" / "interlock").rglob("*.py")
    } - {"."}
    missing = sorted(folder for folder in folders if f"`{folder}/`" not in page)

    assert missing == []


def test_the_error_page_is_the_catalog(root: Path) -> None:
    rows = [
        f"| `{code}` | {entry.status} | `{entry.type}` | {'yes' if entry.retryable else 'no'} | {entry.meaning} |"
        for code, entry in CATALOG.items()
    ]
    page = (root / "docs" / "errors.md").read_text().splitlines()

    assert [line for line in page if line.startswith("| `")] == rows


@pytest.mark.parametrize("name", sorted(env.VARIABLES))
def test_every_environment_variable_is_documented(root: Path, name: str) -> None:
    assert f"`{name}`" in (root / "docs" / "configuration.md").read_text()


def test_parity_has_a_row_for_each_of_the_125_behaviours(root: Path) -> None:
    """With a state, and a test that exists or an ADR."""
    page = (root / "docs" / "parity.md").read_text()
    names = [
        f"{group}{n}"
        for group, count in zip("ABCDE", (44, 25, 21, 16, 19), strict=True)
        for n in range(1, count + 1)
    ]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in page.splitlines()]
    rows = {row[0]: row for row in cells if row and re.fullmatch(r"[A-E]\d+", row[0])}
    states = Counter(row[2].split()[0] for row in rows.values())

    assert list(rows) == names
    assert (
        f"{states['held']} held, {states['exceeded']} exceeded, {states['rejected']} rejected, none open"
        in page
    )
    assert [name for name, row in rows.items() if not _is_proved(root, row[2], row[3])] == []


def _is_proved(root: Path, state: str, proof: str) -> bool:
    if decision := re.fullmatch(r"rejected \(ADR (\d{4})\)", state):
        return any((root / "docs" / "adr").glob(f"{decision[1]}-*.md"))
    files = re.findall(r"`((?:tests|benchmarks)/[^`]*)`", proof)
    return any(name.startswith("tests/") for name in files) and all((root / name).is_file() for name in files)


def test_every_field_report_names_tests_that_exist(root: Path) -> None:
    page = (root / "docs" / "field-reports.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| C\d\d-\d\d \|", line)]
    named = [re.findall(r"`(tests/[^`:]+)::(?:\w+::)?(\w+)[^`]*`", row) for row in rows]

    assert len(rows) == 146
    assert [row[:9] for row, tests in zip(rows, named, strict=True) if not tests] == []
    sources = {file: (root / file).read_text() for file in {file for tests in named for file, _ in tests}}
    missing = {(file, name) for tests in named for file, name in tests if f"def {name}(" not in sources[file]}
    assert missing == set()
