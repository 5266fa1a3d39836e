"""A wait-for graph as Graphviz reads it: `penstock pool show --graph | dot -Tsvg`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SHAPES = {"pool": "box", "job": "ellipse"}
STYLES = {"waits": "dashed", "holds": "solid"}


def dot(graph: Mapping[str, Any]) -> str:
    """The graph in DOT. Arrows go from who waits to what it waits for, and on to who has that."""
    return "\n".join(["digraph penstock {", "  rankdir=LR;", *_lines(graph), "}"])


def _lines(graph: Mapping[str, Any]) -> Iterator[str]:
    for node in graph["nodes"]:
        yield f"  {_quoted(node['id'])} [label={_quoted(node['label'])}, shape={SHAPES[node['kind']]}];"
    for edge in graph["edges"]:
        label = "waits" if edge["kind"] == "waits" else "held by"
        ends = f"{_quoted(edge['from'])} -> {_quoted(edge['to'])}"
        yield f'  {ends} [label="{label}", style={STYLES[edge["kind"]]}];'


def _quoted(text: str) -> str:
    """A text as DOT's quoted string: a backslash would begin an escape, a control character would break the line."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
