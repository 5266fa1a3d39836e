"""Frozen dataclasses that share their methods.

`dataclasses.dataclass(frozen=True)` writes the source of six methods for each class and compiles it, in every process
that imports the class. Functions import some 300 of them, which took longer than all else that they import. Here, all
classes have the same six methods, which look up what the class declares, and that is collected when the class is first
used. The rest is as in the standard library, whose `fields`, `replace`, `asdict` and `is_dataclass` also take these
classes, and type checkers see no difference. A class and those that it inherits from use the same decorator.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

C = TypeVar("C")


class _Plan(NamedTuple):
    """What the shared methods need to know of a class."""

    positional: tuple[str, ...]
    accepted: frozenset[str]
    defaults: Mapping[str, Any]
    factories: Mapping[str, Callable[[], Any]]
    size: int
    has_more: bool
    compared: Callable[[Mapping[str, Any]], Any]
    shown: tuple[str, ...]


def _plan(cls: Any) -> _Plan:
    fields = dataclasses.fields(cls)
    compared = [each.name for each in fields if each.compare]
    return _Plan(
        positional=tuple(each.name for each in fields if each.init and not each.kw_only),
        accepted=frozenset(each.name for each in fields if each.init),
        defaults={each.name: each.default for each in fields if each.default is not dataclasses.MISSING},
        factories={
            each.name: each.default_factory for each in fields if each.default_factory is not dataclasses.MISSING
        },
        size=len(fields),
        has_more=hasattr(cls, "__post_init__"),
        compared=itemgetter(*compared) if compared else lambda _: (),
        shown=tuple(each.name for each in fields if each.repr),
    )


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    plan: _Plan = self._frozen_plan
    values = self.__dict__
    values.update(plan.defaults)
    values.update(zip(plan.positional, given, strict=False))
    values.update(named)
    for name, make in plan.factories.items():
        if name not in values:
            values[name] = make()
    if len(values) != plan.size or not _fit(plan, given, named):
        raise _refusal(type(self), plan, given, named)
    if plan.has_more:
        self.__post_init__()


def _fit(plan: _Plan, given: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Whether all arguments belong to fields, and no two to the same."""
    return (
        len(given) <= len(plan.positional)
        and named.keys() <= plan.accepted
        and (not given or named.keys().isdisjoint(plan.positional[: len(given)]))
    )


def _refusal(cls: type, plan: _Plan, given: tuple[Any, ...], named: Mapping[str, Any]) -> TypeError:
    required = sorted(plan.accepted - plan.defaults.keys() - plan.factories.keys())
    return TypeError(
        f"{cls.__qualname__}() was given {len(given)} values and {sorted(named)}; it takes {sorted(plan.accepted)}, "
        f"of which {len(plan.positional)} without a name, each once, and needs {required}"
    )


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    compared = self._frozen_plan.compared
    return compared(self.__dict__) == compared(other.__dict__)


def _hash(self: Any) -> int:
    return hash(self._frozen_plan.compared(self.__dict__))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._frozen_plan.shown)
    return f"{type(self).__qualname__}({shown})"


def _setattr(_: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_ALWAYS: Mapping[str, Any] = {"__init__": _init, "__repr__": _repr, "__setattr__": _setattr, "__delattr__": _delattr}
_IF_EQUAL_BY_VALUE: Mapping[str, Any] = {"__eq__": _eq, "__hash__": _hash}


_ALONE = threading.RLock()


class _Later:
    """An attribute of a class, worked out when it is first read: a process uses few of the classes that it imports."""

    def __init__(self, name: str, kw_only: bool) -> None:
        self._name = name
        self._kw_only = kw_only

    def __get__(self, _: object, cls: Any) -> Any:
        with _ALONE:
            unfinished = [each for each in cls.__mro__ if vars(each).get(self._name) is self]
            for each in unfinished:  # none, if another thread was first
                _finish(each, self._kw_only)
        return getattr(cls, self._name)


_LATER = ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "_frozen_plan")


def _finish(cls: Any, kw_only: bool) -> None:
    """Make a class a dataclass."""
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, match_args=False)(cls)
    plan = _plan(cls)
    type.__setattr__(cls, "__match_args__", plan.positional)
    cls._frozen_plan = plan


def _shared(*, frozen: bool, kw_only: bool = False, eq: bool = True) -> Callable[[type[C]], type[C]]:
    """`dataclasses.dataclass`, for frozen classes."""
    if not frozen:
        raise ValueError("only frozen dataclasses share their methods")
    methods = {**_ALWAYS, **(_IF_EQUAL_BY_VALUE if eq else {})}

    def decorate(cls: type[C]) -> type[C]:
        for name, method in methods.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        for name in _LATER:
            setattr(cls, name, _Later(name, kw_only))
        return cls

    return decorate


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # the name by which type checkers know what it does
else:
    dataclass = _shared
