"""The named conditions of a module, and how each is mutated."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import accumulate
from tokenize import COMMENT, generate_tokens

from tests.mutate.scope import functions, source
from tests.mutate.trees import places

STORE = "penstock.aws.dynamodb"
"""Here comparisons make conditions of DynamoDB, and have mutants of their own."""

CHANGES = ("Create", "Replace", "Delete", "Check")
ALWAYS = ast.parse("Item.pk.exists() | Item.pk.does_not_exist()", mode="eval").body
ANY_ROW = ast.parse("Item.pk.exists()", mode="eval").body
OFF_BY_ONE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Mutant:
    """One condition of one function, or one effect, changed in one way.

    `at` is the node that is replaced, by its place in a walk over the module; `watched` the node whose value tells
    whether a test can notice: only one that sees it `when` true, or false; None says that any will do.
    """

    module: str
    function: str
    text: str
    how: str
    at: int
    watched: int
    when: bool | None

    @property
    def name(self) -> str:
        """What the record calls it. No line numbers: it must survive that the code around it moves."""
        return f"{self.text} :: {self.how}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.module, self.function, self.name


@dataclass(frozen=True)
class _Way:
    """A node, how it is mutated, what is watched, and the text that names it."""

    node: ast.AST
    how: str
    watched: ast.AST
    when: bool | None = None


@cache
def mutants(module: str) -> tuple[Mutant, ...]:
    """Every mutant of the conditions of a module."""
    found: list[Mutant] = []
    for function, node, _, tree in functions(module):
        at = places(tree)
        count: Counter[str] = Counter()
        for way in _ways(module, node):
            text = text_of(module, way.node)
            count[text + way.how] += 1
            number = count[text + way.how]
            text += f" ({number})" if number > 1 else ""
            node_at, watched = at[id(way.node)], at[id(way.watched)]
            found.append(Mutant(module, function, text, way.how, node_at, watched, way.when))
    return tuple(found)


@cache
def texts(module: str) -> dict[str, str]:
    """The text of each function without its words and its layout. Not the tree: Pythons differ in trees."""
    return {name: bare(source(module), node, tree) for name, node, _, tree in functions(module)}


def bare(text: str, function: ast.FunctionDef, tree: ast.Module) -> str:
    """A function's text without docstrings, messages, comments, blanks, and names of modules before a dot.

    Words decide nothing, and modules may be renamed.
    """
    data, starts = _lines(text)
    first, at = _span(starts, function)
    kept = []
    docstrings = {_span(starts, node) for node in ast.walk(function) if isinstance(node, ast.Expr)}
    for begins, ends in sorted(_span(starts, node) for node in _wording(function)):
        if begins >= first:  # not within one that is cut already
            kept += [data[first:begins], b"" if (begins, ends) in docstrings else b"''"]
            first = ends
    code = b"".join([*kept, data[first:at]]).decode()
    tokens = (each.string for each in generate_tokens(StringIO(code).readline) if each.type != COMMENT)
    joined = " ".join(" ".join(tokens).split())
    return re.sub(r"(?<!\. )(?<!\w)([a-z]\w*) \. ", lambda name: "" if name[1] in imported(tree) else name[0], joined)


@cache
def imported(tree: ast.Module) -> frozenset[str]:
    """The names that a module imports."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return frozenset(each.asname or each.name for node in nodes for each in node.names)


@cache
def _lines(text: str) -> tuple[bytes, Sequence[int]]:
    """A text in bytes, as nodes count their columns, and where each line begins."""
    data = text.encode()
    return data, [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]


def _span(starts: Sequence[int], node: ast.AST) -> tuple[int, int]:
    """The first byte of a node, and the one after its last."""
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _wording(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The f-strings and the texts of several words that are compared with nothing."""
    compared = {id(each) for node in ast.walk(function) if isinstance(node, ast.Compare) for each in ast.walk(node)}
    for node in ast.walk(function):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in compared else None
        if isinstance(node, ast.JoinedStr) or (isinstance(text, str) and " " in text):
            yield node


def text_of(module: str, node: ast.AST) -> str:
    """A node as it is written, its layout aside."""
    data, starts = _lines(source(module))
    first, last = _span(starts, node)
    text = " ".join(data[first:last].decode().split())
    return text.replace("( ", "(").replace(" )", ")").replace(",)", ")")


@cache
def nodes_of(function: ast.AST) -> Sequence[ast.AST]:
    """A function's nodes, but for what is in the words that it says: those decide nothing."""
    found: list[ast.AST] = []
    _gather(function, found)
    return found


def _gather(node: ast.AST, found: list[ast.AST]) -> None:
    found.append(node)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            _gather(child, found)


def _ways(module: str, function: ast.FunctionDef) -> Iterator[_Way]:
    tests = {id(test) for node in nodes_of(function) for test in _tests(node)}
    loops = {id(node.test) for node in nodes_of(function) if isinstance(node, ast.While)}
    inner = {id(part) for node in nodes_of(function) for part in _parts(node)}
    for node in nodes_of(function):
        kept = id(node) not in inner and _is_boolean(node) and module != STORE
        if kept or id(node) in tests:
            yield from _forced(node, id(node) in loops)
        if isinstance(node, ast.BoolOp):
            yield from _dropped(module, node)
        if isinstance(node, ast.Compare):
            for number, sign in enumerate(node.ops):
                if type(sign) in OFF_BY_ONE:
                    other = SIGNS[OFF_BY_ONE[type(sign)]]
                    yield _Way(node, f"{SIGNS[type(sign)]} is {other}" + f" at {number}" * bool(number), node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CHANGES:
            yield _Way(node, "unconditional", node)
        if module == STORE:
            yield from _conditions(node)


def _tests(node: ast.AST) -> Iterable[ast.expr]:
    """What a node branches on."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _parts(node: ast.AST) -> Iterable[ast.expr]:
    """Operands, whose being dropped says all."""
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []


def _is_boolean(node: ast.AST) -> bool:
    """Whether an expression that nothing branches on here is a condition all the same: it is returned, or kept."""
    if isinstance(node, ast.BoolOp):
        return all(_is_boolean(value) for value in node.values)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("any", "all")
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _forced(node: ast.AST, loops: bool) -> Iterator[_Way]:
    if not loops:  # a loop that never ends is noticed by anybody
        yield _Way(node, "true", node, False)
    yield _Way(node, "false", node, True)


def _dropped(module: str, node: ast.BoolOp) -> Iterator[_Way]:
    """Without an operand: one before the last matters only where it stops an `and`, or decides an `or`."""
    for number, value in enumerate(node.values):
        text = text_of(module, value)
        again = [ast.dump(each) for each in node.values].index(ast.dump(value)) != number
        when = None if value is node.values[-1] else isinstance(node.op, ast.Or)
        yield _Way(node, f"without {text}" + f" at {number}" * again, value, when)


def _conditions(node: ast.AST) -> Iterator[_Way]:
    """The conditions of DynamoDB: always met, or met by any row that stands there."""
    if isinstance(node, ast.keyword) and node.arg == "condition":
        yield _Way(node.value, "always met", node.value)
        if "unchanged" in ast.unparse(node.value):
            yield _Way(node.value, "met by any row", node.value)
    if isinstance(node, ast.FunctionDef) and node.name in ("absent", "unchanged"):
        value = next(each.value for each in node.body if isinstance(each, ast.Return))
        assert value
        yield _Way(value, "always met", value)
        if node.name == "unchanged":
            yield _Way(value, "met by any row", value)


def mutated(mutant: Mutant, node: ast.AST) -> ast.expr:
    """What stands in the mutant in the place of a node."""
    if mutant.how in ("true", "false"):
        return ast.Constant(mutant.how == "true")
    if mutant.how == "always met":
        return ALWAYS
    if mutant.how == "met by any row":
        return ANY_ROW
    if isinstance(node, ast.Call):
        return ast.Call(ast.Name("__unconditional__", ast.Load()), [node], [])
    if isinstance(node, ast.BoolOp):
        return _without(mutant, node)
    assert isinstance(node, ast.Compare)
    number = int(mutant.how.partition(" at ")[2] or 0)
    signs = [OFF_BY_ONE[type(sign)]() if at == number else sign for at, sign in enumerate(node.ops)]
    return ast.Compare(node.left, signs, node.comparators)


def _without(mutant: Mutant, node: ast.BoolOp) -> ast.expr:
    number = [way.how for way in _dropped(mutant.module, node)].index(mutant.how)
    left = [value for at, value in enumerate(node.values) if at != number]
    return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
