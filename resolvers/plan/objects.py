"""A selection of objects of one type: its leaves column by column, its branches side by side, then row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graph.columns import Loose
from graph.entity import Entity
from graph.model import Layout, Model
from graph.records import are_items
from graph.rows import NOTHING, KeyOnly, Rows
from resolvers.plan.failures import At, Failed, Step
from resolvers.plan.run import Batch, Branch, Leaf, Run, write_rows


class Objects:
    """Values of any one type, as its resolvers know them."""

    __slots__ = ("at", "values")

    def __init__(self, values: Sequence[Any], at: At) -> None:
        self.values = values
        self.at = at

    def __len__(self) -> int:
        return len(self.values)

    def source(self, number: int) -> Any:
        """Give a value as its resolvers take it."""
        return self.values[number]

    def take(self, numbers: Sequence[int]) -> Objects:
        """Take some of the values."""
        return Objects([self.values[number] for number in numbers], some(self.at, numbers))


class Items:
    """Items of one type."""

    __slots__ = ("at", "rows")

    def __init__(self, rows: Rows, at: At) -> None:
        self.rows = rows
        self.at = at

    def __len__(self) -> int:
        return len(self.rows.wires)

    def source(self, number: int) -> Entity:
        """Give an item as its resolvers take it."""
        return self.rows.entity(number)

    def take(self, numbers: Sequence[int]) -> Items:
        """Take some of the items."""
        return Items(self.rows.take(numbers), some(self.at, numbers))


def some(at: At, numbers: Sequence[int]) -> At:
    """Tell the places of some of the objects."""
    return lambda number: at(numbers[number])


def below(at: At, step: Step) -> At:
    """Tell the places of a field of objects."""
    return lambda number: (*at(number), step)


class Selection:
    """What is selected of objects of one type."""

    def __init__(self, names: tuple[str, ...], leaves: dict[int, Leaf], branches: dict[int, Branch]) -> None:
        self._names = names
        self._leaves = tuple(leaves.items())
        self._branches = tuple(branches.items())

    async def run(self, run: Run, batch: Batch) -> list[Any]:
        """Write the objects of a batch; the list is Loose where one failed."""
        if not len(batch):
            return []
        if not self._branches:
            return self.now(run, batch)
        columns, is_loose = self._write_leaves(run, batch)
        await (self._read_living if is_loose else self._read)(run, batch, columns)
        return write_rows(self._names, columns, len(batch))

    def now(self, run: Run, batch: Batch) -> list[Any]:
        """Write the objects of a batch for which nothing is to be read."""
        columns, _ = self._write_leaves(run, batch)
        return write_rows(self._names, columns, len(batch))

    def _write_leaves(self, run: Run, batch: Batch) -> tuple[list[list[Any]], bool]:
        columns: list[list[Any]] = [[]] * len(self._names)
        is_loose = False
        for place, leaf in self._leaves:
            column = columns[place] = leaf(run, batch)
            is_loose = is_loose or type(column) is Loose
        return columns, is_loose

    async def _read(self, run: Run, batch: Batch, columns: list[list[Any]]) -> None:
        found = await run.operation.together([branch(run, batch) for _, branch in self._branches])
        for (place, _), column in zip(self._branches, found, strict=True):
            columns[place] = column

    async def _read_living(self, run: Run, batch: Batch, columns: list[list[Any]]) -> None:
        """Read further only for the objects that have not failed yet."""
        leaves = [columns[place] for place, _ in self._leaves]
        living = [number for number, row in enumerate(zip(*leaves, strict=True)) if Failed not in map(type, row)]
        narrow: list[list[Any]] = [[]] * len(columns)
        if living:
            await self._read(run, batch.take(living), narrow)
        for place, _ in self._branches:
            columns[place] = spread(narrow[place], living, len(batch))


def spread(column: list[Any], numbers: Sequence[int], size: int) -> list[Any]:
    """Put a column of some objects among all of them."""
    if len(numbers) == size:
        return column
    wide: list[Any] = [None] * size
    for number, value in zip(numbers, column, strict=True):
        wide[number] = value
    return Loose(wide) if type(column) is Loose else wide


class Nodes:
    """The selection below a field that leads to items: of one type, or of each that may stand there."""

    def __init__(self, model: Model, compile_: Callable[[str], Selection]) -> None:
        self._model = model
        self._compile = compile_
        self._selections: dict[str, Selection] = {}

    async def write(self, run: Run, found: Sequence[Any], at: At, layout: Layout | None = None) -> list[Any]:
        """Write what was found: items of a layout, entities, None, or exceptions, which stay as they are."""
        if layout is not None and _are_wires(found):
            rows = Rows(self._model, self._model.items[layout.type_name], layout, found)
            return await self._of(layout.type_name).run(run, Items(rows, at))
        written: list[Any] = [one if one is None or isinstance(one, (Exception, Failed)) else None for one in found]
        groups = list(by_type(self._model, found, layout).items())
        work = [self._of(name).run(run, Items(rows, some(at, numbers))) for name, (numbers, rows) in groups]
        results = await run.operation.together(work)
        for (_, (numbers, _)), result in zip(groups, results, strict=True):
            for number, row in zip(numbers, result, strict=True):
                written[number] = row
        return Loose(written)

    def _of(self, type_name: str) -> Selection:
        selection = self._selections.get(type_name)
        if selection is None:
            selection = self._selections[type_name] = self._compile(type_name)
        return selection


def by_type(model: Model, found: Sequence[Any], layout: Layout | None) -> dict[str, tuple[list[int], Rows]]:
    """Group what was found by type, each with its place."""
    numbers: dict[str, list[int]] = {}
    for number, one in enumerate(found):
        if isinstance(one, Entity):
            numbers.setdefault(one.type.name, []).append(number)
        elif one is not None and not isinstance(one, (Exception, Failed)):
            assert layout is not None
            numbers.setdefault(layout.type_name, []).append(number)
    return {
        name: (places, rows_of(model, name, [found[place] for place in places], layout))
        for name, places in numbers.items()
    }


def rows_of(model: Model, name: str, found: list[Any], layout: Layout | None) -> Rows:
    """Make rows of items of a layout and entities; whole entities of one layout are read as their items."""
    if layout is not None and _are_wires(found):
        return Rows(model, model.items[name], layout, found)
    if layout is None or layout.type_name != name:
        shapes = {id(one.layout): one.layout for one in found if isinstance(one, Entity)}
        layout = next(iter(shapes.values())) if len(shapes) == 1 else None
    entities = {number: one for number, one in enumerate(found) if isinstance(one, Entity)}
    wires = [_wire(one, layout) if isinstance(one, Entity) else one for one in found]
    return Rows(model, model.items[name], layout, wires, entities)


def _are_wires(found: Sequence[Any]) -> bool:
    """Say whether all that was found can be read as it is: items, or the keys of some."""
    return are_items(found) or frozenset(map(type, found)) == _KEYS


_KEYS = frozenset((KeyOnly,))


def _wire(entity: Entity, layout: Layout | None) -> Any:
    # What a filter has loaded behind an item is kept with the entity.
    is_bare = not entity.named and not entity.nodes
    is_whole = entity.holds is None and entity.layout is layout and layout is not None and is_bare
    return entity.wire if is_whole else NOTHING
