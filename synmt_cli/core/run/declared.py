"""The options of builders, read from the text of their modules: importing those loads torch.

A declaration may have int, float, bool, str, list[...], Literal[...], `|`, and `Bounds(...)`, also
by a name that the module gives it.
"""

import ast
import functools
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synmt_cli.core.options import Bounds, Option
from synmt_cli.core.variants import table
from synmt_cli.core.variants.table import Variant

TYPES = {"int": int, "float": float, "bool": bool, "str": str}


def declared(variant: Variant) -> dict[str, Option]:
    """The same as `variant.options()`, which is called only for variants of one's own file.

    The module of that file is loaded in any case.
    """
    if variant.own:
        return variant.options()
    return {name: one for path in variant.paths() for name, one in _of_builder(path).items()}


@functools.cache
def _of_builder(path: str) -> dict[str, Option]:
    """The options of one builder. path: `module:function`, as in VARIANTS."""
    module, _, function = path.partition(":")
    tree = ast.parse(Path(table.__file__).with_name(f"{module}.py").read_bytes())
    names = dict(_named_bounds(tree))
    [builder] = [
        one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function
    ]
    parameters = zip(builder.args.kwonlyargs, builder.args.kw_defaults, strict=True)
    return {one.arg: _option(one.annotation, default, names) for one, default in parameters}


def _named_bounds(tree: ast.Module) -> Iterator[tuple[str, Bounds]]:
    for one in tree.body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            call = one.value
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Bounds":
                yield one.targets[0].id, _bounds(call, {})


def _option(
    annotation: ast.expr | None, default: ast.expr | None, names: dict[str, Bounds]
) -> Option:
    """The option with this default. annotation: `Annotated[hint, meaning]`, or also with bounds."""
    assert isinstance(annotation, ast.Subscript)
    assert isinstance(annotation.slice, ast.Tuple)
    assert default is not None
    hint, meaning, *bounds = annotation.slice.elts
    within = _bounds(bounds[0], names) if bounds else Bounds()
    return Option(_hint(hint), ast.literal_eval(default), ast.literal_eval(meaning), within)


def _bounds(node: ast.expr, names: dict[str, Bounds]) -> Bounds:
    if isinstance(node, ast.Name):
        return names[node.id]
    assert isinstance(node, ast.Call)
    named = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    return Bounds(*map(ast.literal_eval, node.args), **named)


def _hint(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name):
            return TYPES[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _hint(left) | _hint(right)
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return list[_hint(item)]  # type: ignore[misc]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            return typing.Literal[ast.literal_eval(choices)]
    raise TypeError(f"an option of a type that is not read here: {ast.unparse(node)}")
