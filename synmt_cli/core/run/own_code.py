"""What builders in a file of one's own compute, as text that can be compared. Nothing is run."""

import ast
from collections.abc import Iterator, Sequence

IMPORTS = ("import ", "from ")  # how the statements begin that come first, sorted


def code(source: bytes, functions: Sequence[str]) -> str:
    """What some builders of a module compute: the text of them and of all that they use.

    Comments, docstrings, layout and the order of imports do not count; nor does what they do not
    use, what Annotated says of a type, and the defaults of the builders themselves, which runs
    write down. Raises SyntaxError, ValueError.
    """
    bare = _Bare(functions)
    statements = [bare.visit(one) for one in ast.parse(source).body if not _is_idle(one)]
    used, reached = set(functions), set[int]()
    while True:
        new = [
            (number, one)
            for number, one in enumerate(statements)
            if number not in reached and (not (names := _names(one)) or names & used)
        ]
        if not new:
            kept = (one for number, one in enumerate(statements) if number in reached)
            texts = [ast.unparse(one) for one in kept]
            first = sorted(text for text in texts if text.startswith(IMPORTS))
            return "\n".join([*first, *(text for text in texts if text not in first)])
        for number, one in new:
            reached.add(number)
            used |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}


def _names(statement: ast.stmt) -> set[str]:
    """What a statement defines or changes; nothing for one that always counts, such as a call."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).partition(".")[0] for one in names} - {"*"}
        case ast.Assign(targets=targets):
            return {node.id for target in targets for node in _written(target)}
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return {node.id for node in _written(target)}
    return set()


def _written(target: ast.expr) -> Iterator[ast.Name]:
    return (node for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_text(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _is_idle(statement: ast.stmt) -> bool:
    """Whether it is a docstring, or for `python FILE` alone."""
    match statement:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return _is_text(statement)


class _Bare(ast.NodeTransformer):
    """Leaves out what does not count in `code`."""

    def __init__(self, builders: Sequence[str]) -> None:
        self.builders = builders

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in self.builders:
            node.args.kw_defaults = [None] * len(node.args.kw_defaults)
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[kind, *_])):
                return self.generic_visit(kind)
        return self.generic_visit(node)

    def _without_docstring(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
        return self.generic_visit(node)
