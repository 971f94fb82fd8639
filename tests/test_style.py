"""No function takes more arguments than a reader can keep in mind; what travels together has a name of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "sgpd"
MOST = 6

# A user's script names every one of these arguments, most of which have a default.
PUBLIC = {
    "data/trajectories.py Trajectories.read",
    "models/fit.py fit",
    "models/model.py Model.predict",
}
# Typer reads the options of a command from the arguments of its function.
COMMANDS = {
    "cli/app.py paper",
    "cli/app.py predict",
    "cli/app.py simulate",
    "cli/commands/fit.py fit",
}


def functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, int]]:
    """The name of every function, methods and nested ones too, and how many arguments a caller may give it."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{child.name}".lstrip(".")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
            yield name, sum(argument.arg not in ("self", "cls") for argument in given)
        yield from functions(child, name)


def test_only_the_functions_that_are_listed_have_more_than_six_arguments():
    wide = {
        f"{path.relative_to(SOURCE).as_posix()} {name}"
        for path in SOURCE.rglob("*.py")
        for name, count in functions(ast.parse(path.read_text(encoding="utf-8")))
        if count > MOST
    }
    listed = PUBLIC | COMMANDS
    assert wide - listed == set(), f"more than {MOST} arguments: let those that travel together be one"
    assert listed - wide == set(), "these are listed without need; take them out"


def test_every_function_is_counted_wherever_it_stands_and_self_is_not():
    source = """
class A:
    def method(self, a, /, b, *rest, c=1, **others):
        def inner(x, y): ...
    @classmethod
    async def made(cls, a): ...
if True:
    def plain(): ...
"""
    found = dict(functions(ast.parse(source)))
    assert found == {"A.method": 3, "A.method.inner": 2, "A.made": 1, "plain": 0}
