"""YAML of the job file: numbers and booleans as in YAML 1.2, with the line of every key."""

from __future__ import annotations

import re
from typing import Any

import yaml

from mpidata.config.base import Location, Problem

__all__ = ["Document", "dump", "parse_value", "read"]

_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 1_000_000
# PyYAML reads YAML 1.1, in which `1e-3` is a text, `no` is false, 010 is 8 and 12:30 is 750.
_RULES: tuple[tuple[str, str, list[str] | None], ...] = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(inf|Inf|INF))|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}


class _Dumper(yaml.SafeDumper):
    """Quotes texts that either of the two YAML versions would not read as texts."""


for _name, _pattern, _first in _RULES:
    _regexp = re.compile(f"^(?:{_pattern})$")
    _Loader.add_implicit_resolver(_TAG + _name, _regexp, _first)
    _Dumper.add_implicit_resolver(_TAG + _name, _regexp, _first)


class Document:
    """The contents of a YAML text.

    Attributes
    ----------
    data : Any
        Dicts, lists and scalars.
    lines : dict of location to int
        Line of each key and item, counted from 1.
    problems : list of (location, sentence)
        Keys that occur twice.
    """

    def __init__(self, data: Any, lines: dict[Location, int], problems: list[Problem]) -> None:
        self.data = data
        self.lines = lines
        self.problems = problems


def read(text: str) -> Document:
    """Read one YAML document; raises yaml.YAMLError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(None, {}, [])
        _check_size(node)
        problems: list[Problem] = []
        _prepare(node, (), problems, [])
        data = loader.construct_document(node)
        lines: dict[Location, int] = {}
        _lines(node, (), lines)
        return Document(data, lines, problems)
    finally:
        loader.dispose()


def parse_value(text: str, location: Location) -> Any:
    """Read the value of a key from a separate text, as on a command line; raises yaml.YAMLError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node)
        _prepare(node, location, [], [])
        return loader.construct_document(node)
    finally:
        loader.dispose()


def dump(data: Any) -> str:
    """Return plain data as YAML that `read` reads back unchanged, with lists of scalars on one line."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return text


def _check_size(top: yaml.Node) -> None:
    """Refuse data that becomes huge when aliases are replaced, for example ten levels of ten aliases."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 0  # while it is counted: a value that contains itself is refused later
            value = node.value if isinstance(node, yaml.CollectionNode) else []
            inner = [one for pair in value for one in pair] if isinstance(node, yaml.MappingNode) else value
            sizes[id(node)] = 1 + sum(map(size, inner))
        return sizes[id(node)]

    if size(top) > _MOST_NODES:
        raise yaml.MarkedYAMLError(None, None, f"more than {_MOST_NODES} values, with all aliases", top.start_mark)


def _prepare(node: yaml.Node, location: Location, problems: list[Problem], above: list[yaml.Node]) -> None:
    if any(node is other for other in above):
        raise yaml.MarkedYAMLError(None, None, "a value that contains itself", node.start_mark)
    above = [*above, node]
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _TAG + "merge":
                key.tag = _TAG + "str"  # a field may be named `no` or `1e5`, or refused for this name
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen and key.tag != _TAG + "merge":
                dotted = ".".join(map(str, (*location, name)))
                sentence = f"the key '{dotted}' occurs twice, in lines {seen[name]} and {line}. Remove one of them."
                problems.append(((*location, name), sentence))
            seen[name] = line
            _prepare(value, (*location, name), problems, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            if location[1:] == ("program",) and isinstance(item, yaml.ScalarNode):
                item.tag = _TAG + "str"  # `[./solver, 010, 1e-3]`: arguments are texts, exactly as written
            _prepare(item, (*location, index), problems, above)


def _lines(node: yaml.Node, location: Location, lines: dict[Location, int]) -> None:
    lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            lines[(*location, str(key.value))] = key.start_mark.line + 1
            _lines(value, (*location, str(key.value)), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _lines(item, (*location, index), lines)
