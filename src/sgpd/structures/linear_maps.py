"""Linear maps in words: "q1 - q2" is a row of coefficients of the state."""

import ast
from collections.abc import Sequence

import numpy as np

from sgpd.errors import BadInput

Row = np.ndarray  # (d,), coefficients
EXAMPLE = "write sums of coordinates as `q1 - q2`, several between commas, or give a matrix"


def linear_map(text: str, names: Sequence[str]) -> np.ndarray:
    """The matrix (k, d) of k linear expressions between commas, in coordinates of these names."""
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadInput(f"depends_on {text!r}: this is no sum of coordinates", EXAMPLE) from None
    entries = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return np.stack([_row(entry, list(names), text) for entry in entries])


def _row(node: ast.AST, names: list[str], text: str) -> Row:
    match node:
        case ast.Name(id=name) if name in names:
            return np.eye(len(names))[names.index(name)]
        case ast.Name(id=name):
            raise BadInput(
                f"depends_on {text!r}: there is no coordinate {name!r}", f"the coordinates are {', '.join(names)}"
            )
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_row(inner, names, text)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _row(left, names, text) + _row(right, names, text)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _row(left, names, text) - _row(right, names, text)
        case ast.BinOp(left=ast.Constant(value=int() | float() as factor), op=ast.Mult(), right=right):
            return factor * _row(right, names, text)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() | float() as factor)):
            return factor * _row(left, names, text)
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as divisor)) if divisor:
            return _row(left, names, text) / divisor
    raise BadInput(f"depends_on {text!r}: {ast.unparse(node)!r} is no sum of coordinates", EXAMPLE)


def restricted(rows: np.ndarray, whole: np.ndarray, latent: str, text: str, names: Sequence[str]) -> np.ndarray:
    """Rows (k, d) on the state as rows on the coordinates `whole` (m, d) that the latent may see at all."""
    inside = rows @ np.linalg.pinv(whole)
    if not np.allclose(inside @ whole, rows):
        known = ", ".join(name for name, column in zip(names, whole.T, strict=True) if column.any())
        raise BadInput(f"depends_on {text!r}: the latent {latent!r} depends on {known} only", "leave the others out")
    return inside
