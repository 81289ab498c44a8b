"""The arrays in a PyMC model's graph that hold rows, as inputs of any length with names.

A constant has no name in PyTensor. It is called as whoever made the model says (`KnownArray`), by
its own name, or by the variable that it meets in the graph: `beta column` is what multiplies beta,
`b index` what chooses among the entries of b.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

# Rows are finite numbers; what is infinite in a graph is the largest number in them.
LARGEST = float(np.finfo(np.float64).max)
# Nodes between a constant and the variable that it is called after.
MOST_STEPS = 4


class KnownArray(NamedTuple):
    """An array of the graph and what the rows hold in its place: `stored` less `shift`, in some of
    its columns."""

    values: NDArray[Any]
    name: str
    stored: NDArray[Any]
    columns: slice | None = None
    shift: NDArray[Any] | None = None

    def of(self, field: Any, shape: tuple[int, ...]) -> Any:
        """The array of the graph, which has this shape, from the rows' field."""
        part = field if self.columns is None else field[:, self.columns]
        part = part if self.shift is None else part - self.shift
        return part if self.values.shape == shape else part.reshape((-1, *shape[1:]))


class RowInputs:
    """The arrays in a model's graph that are as long as the observations, as symbolic inputs."""

    def __init__(
        self,
        num_rows: int,
        names: Mapping[Any, str],
        known: Sequence[KnownArray] = (),
        callers: Mapping[Any, str] | None = None,
    ):
        self.num_rows = num_rows
        self.names = names
        self.known = known
        self.callers = dict(callers or {})
        """Names for leaves that have none, from where they stand."""
        self.arrays: dict[str, NDArray[Any]] = {}
        self.inputs: dict[str, Any] = {}
        self._of_leaf: dict[Any, Any] = {}

    def holds_rows(self, leaf: Any) -> bool:
        values = value_of(leaf)
        return values is not None and values.ndim > 0 and values.shape[0] == self.num_rows

    def says_nothing(self, leaf: Any) -> bool:
        """Whether a leaf of rows is ones, zeros or infinities throughout: no column of anything."""
        values = value_of(leaf)
        if values is None or leaf in self.names or not values.size or leaf.name:
            return False
        first = values.flat[0]
        return bool((first in (0, 1) or np.isinf(first)) and np.all(values == first))

    def input_of(self, leaf: Any) -> Any | None:
        """What stands for a constant or shared variable; None if it holds no rows."""
        if leaf in self._of_leaf:
            return self._of_leaf[leaf]
        if not self.holds_rows(leaf):
            return None
        values = cast("NDArray[Any]", value_of(leaf))
        if self.inputs and self.says_nothing(leaf):
            tensor: Any = importlib.import_module("pytensor.tensor")
            filled = tensor.alloc(
                tensor.constant(values.flat[0], dtype=leaf.type.dtype),
                self.length,
                *values.shape[1:],
            )
            self._of_leaf[leaf] = filled
            return filled
        known = self._known(leaf, values)
        if known is None:
            found = self._field(self._name(leaf, values), values)
        else:
            found = known.of(self._field(known.name, known.stored), values.shape)
        self._of_leaf[leaf] = found
        return found

    @property
    def length(self) -> Any:
        """The number of rows, symbolically."""
        return next(iter(self.inputs.values())).shape[0]

    def count(self) -> Any:
        """0, 1, … for each row. JAX makes a range of a fixed length only."""
        tensor: Any = importlib.import_module("pytensor.tensor")
        first = next(iter(self.inputs.values()))
        column = first[(slice(None), *([0] * (first.ndim - 1)))]
        return tensor.cumsum(tensor.ones_like(column, dtype="int64")) - 1

    def _known(self, leaf: Any, values: NDArray[Any]) -> KnownArray | None:
        if leaf in self.names:
            return None
        there = () if leaf.name else (KnownArray(a, name, a) for name, a in self.arrays.items())
        # PyTensor takes axes of length one away, and puts them in.
        shapes = (
            (one, values.reshape(one.values.shape))
            for one in (*self.known, *there)
            if one.values.size == values.size
        )
        return next((one for one, same in shapes if _equal(one.values, same)), None)

    def _field(self, name: str, values: NDArray[Any]) -> Any:
        """The symbolic field of this name, as the graph has it; its values are kept as the rows'.

        Narrow numbers become wide ones: indices computed from a column of eight bits overflow.
        """
        tensor: Any = importlib.import_module("pytensor.tensor")
        if values.dtype.kind in "iuf":
            values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
        infinite = values.dtype.kind == "f" and bool(np.isinf(values).any())
        if name not in self.inputs:
            # Not tensor.tensor(name), which takes a name such as "p(k, n)" for a type.
            kind = tensor.TensorType(dtype=values.dtype.name, shape=(None, *values.shape[1:]))
            self.inputs[name] = kind(name=name)
        if name not in self.arrays:
            self.arrays[name] = np.clip(values, -LARGEST, LARGEST) if infinite else values
        field = self.inputs[name]
        if not infinite:
            return field
        # A number of Python's would become one of 32 bits.
        largest, infinity = (tensor.constant(x, dtype="float64") for x in (LARGEST, np.inf))
        signed = tensor.switch(tensor.ge(field, largest), infinity, field)
        return tensor.switch(tensor.le(field, -largest), -infinity, signed)

    def _name(self, leaf: Any, values: NDArray[Any]) -> str:
        """The leaf's name, numbered where another array has it."""
        if leaf in self.names:
            return self.names[leaf]
        wanted = leaf.name or self.callers.get(leaf) or "column"
        name, number = wanted, 1
        while name in self.arrays and not _equal(self.arrays[name], values):
            number += 1
            name = f"{wanted} {number}"
        return name


def value_of(leaf: Any) -> NDArray[Any] | None:
    """The numbers of a constant or a shared variable."""
    shared: Any = importlib.import_module("pytensor.compile.sharedvalue").SharedVariable
    data: Any = None
    if is_constant(leaf):
        data = leaf.data
    elif isinstance(leaf, shared):
        data = leaf.get_value(borrow=True)
    return cast("NDArray[Any]", data) if isinstance(data, np.ndarray) else None


def is_constant(leaf: Any) -> bool:
    constant: Any = importlib.import_module("pytensor.graph.basic").Constant
    return isinstance(leaf, constant)


def names_by_use(outputs: Sequence[Any], variables: Mapping[Any, str]) -> dict[Any, str]:
    """For the constants of some graphs, a name after the nearest variable that they meet."""
    traversal: Any = importlib.import_module("pytensor.graph.traversal")
    found: dict[Any, tuple[int, str]] = {}
    for node in traversal.io_toposort([], list(outputs)):
        kind = "index" if "Subtensor" in type(node.op).__name__ else "column"
        seen = {place: _nearest(entry, variables) for place, entry in enumerate(node.inputs)}
        for leaf, place, steps in _constants(node):
            met = [near for other, near in seen.items() if other != place and near is not None]
            if met:
                distance, name = min(met)
                offer = steps + distance, f"{name} {kind}"
                found[leaf] = min(found.get(leaf, offer), offer)
    return {leaf: name for leaf, (_, name) in found.items()}


def _constants(node: Any) -> Iterator[tuple[Any, int, int]]:
    """The constants right above a node, looking through what only reshapes them."""
    for place, entry in enumerate(node.inputs):
        leaf, steps = entry, 0
        while leaf.owner is not None and len(leaf.owner.inputs) == 1 and steps < MOST_STEPS:
            leaf, steps = leaf.owner.inputs[0], steps + 1
        if leaf.owner is None and value_of(leaf) is not None:
            yield leaf, place, steps


def _nearest(entry: Any, variables: Mapping[Any, str], steps: int = 0) -> tuple[int, str] | None:
    """The nearest named variable above an entry, and how far it is."""
    if entry in variables:
        return steps, variables[entry]
    if entry.owner is None or steps == MOST_STEPS:
        return None
    above = [_nearest(one, variables, steps + 1) for one in entry.owner.inputs]
    return min((one for one in above if one is not None), default=None)


def _equal(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two arrays hold the same numbers; rows hold infinite ones as the largest."""
    if first.shape != second.shape:
        return False
    a, b = (np.clip(x, -LARGEST, LARGEST) if x.dtype.kind == "f" else x for x in (first, second))
    return bool(np.array_equal(a, b))
