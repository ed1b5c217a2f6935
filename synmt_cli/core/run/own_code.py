"""The code of builders in a file of one's own, as text that can be compared. Nothing is run."""

import ast
from collections.abc import Container, Iterator, Sequence

IMPORTS = ("import ", "from ")  # statements that begin so come first, sorted


def code(source: bytes, builders: Sequence[str]) -> str:
    """The code of builders of a module, and of all that they use, as text.

    Comments, docstrings, layout, the order of imports and annotations do not count; nor do
    statements that the builders do not use, what Annotated adds to a type, and the defaults of
    builders that only VARIANTS names, which runs write down. Types of the builders' options do
    count, since they decide what the builder gets. Raises SyntaxError, ValueError.
    """
    bare = _Bare(builders, _called(source))
    body = (one for one in ast.parse(source).body if not _is_idle(one))
    statements = [bare.statement(part) for one in body for part in _apart(one)]
    used, reached = set(builders), set[int]()
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


def _called(source: bytes) -> set[str]:
    """The names that the code of a module uses."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _apart(statement: ast.stmt) -> list[ast.stmt]:
    """The statement; an import of several names becomes one import for each."""
    match statement:
        case ast.Import(names=names):
            return [ast.Import([name]) for name in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            return [ast.ImportFrom(module, [name], level) for name in names]
    return [statement]


def _names(statement: ast.stmt) -> set[str]:
    """The names that a statement defines or changes; none if it always counts, such as a call."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).partition(".")[0] for one in names} - {"*"}
        case ast.Assign(targets=targets):
            return {node.id for target in targets for node in _written(target)}
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return {node.id for node in _written(target)}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="VARIANTS")))):
            return {"VARIANTS"}
    return set()


def _written(target: ast.expr) -> Iterator[ast.Name]:
    return (node for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_text(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or only for `python FILE` or for type checkers."""
    match statement:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
    return _is_text(statement)


class _Bare(ast.NodeTransformer):
    """Leaves out what does not count in `code`. called: names of functions that others call."""

    def __init__(self, builders: Sequence[str], called: Container[str]) -> None:
        self.builders, self.called = builders, called

    def statement(self, node: ast.stmt) -> ast.stmt:
        """A statement of the module, without what does not count.

        Only here can a function be a builder: methods and inner functions may have its name.
        """
        if isinstance(node, ast.FunctionDef) and node.name in self.builders:
            if node.name not in self.called:
                node.args.kw_defaults = [None] * len(node.args.kw_defaults)
            return self._without_docstring(node)
        bare: ast.stmt = self.visit(node)
        return bare

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for one in ast.walk(node.args):
            if isinstance(one, ast.arg):
                one.annotation = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node.value, node.slice:
            case (
                ast.Name(id="Annotated") | ast.Attribute(attr="Annotated"),
                ast.Tuple(elts=[kind, *_]),
            ):
                return self.generic_visit(kind)
        return self.generic_visit(node)

    def _without_docstring(self, node: ast.FunctionDef | ast.ClassDef) -> ast.stmt:
        node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
        self.generic_visit(node)
        return node
