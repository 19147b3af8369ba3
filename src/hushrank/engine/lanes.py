"""Matrix products whose sums stay in the registers of a processor, for kernels that Numba compiles.

Why: a loop of Numba alone keeps its sums in memory, and takes three times as long. LLVM cuts sixteen numbers into the
vectors that the machine has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic, models, register_model

LANES = 16  # numbers of a row that are worked on at once
ROWS = 6  # rows that are; Why six: with sixteen lanes, twelve of the sixteen registers of AVX2 hold sums
_PRODUCTS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_EMPTY = ir.Constant(_VECTOR, ir.Undefined)
_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


class Lanes(types.Type):  # type: ignore[misc]  # Numba has no types
    """Sixteen float32 numbers in a register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """What LLVM calls them."""

    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _VECTOR)


_LANES = Lanes()


@intrinsic
def load_lanes(typing: Any, matrix: Any, row: Any, column: Any) -> Any:
    """matrix[row, column : column + LANES]"""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        loaded = builder.load(_find_lanes(context, builder, signature, given))
        loaded.align = 4
        return loaded

    del typing
    return _LANES(matrix, row, column), generate


@intrinsic
def store_lanes(typing: Any, matrix: Any, row: Any, column: Any, lanes: Any) -> Any:
    """matrix[row, column : column + LANES] = lanes"""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[3], _find_lanes(context, builder, signature, given), align=4)
        return context.get_dummy_value()

    del typing
    return types.void(matrix, row, column, lanes), generate


def _find_lanes(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    kind = signature.args[0]
    matrix = context.make_array(kind)(context, builder, given[0])
    first = get_item_pointer(context, builder, kind, matrix, [given[1], given[2]], wraparound=False)
    return builder.bitcast(first, _VECTOR.as_pointer())


@intrinsic
def add_product(typing: Any, total: Any, number: Any, lanes: Any) -> Any:
    """total + number * lanes, rounded once where the machine can."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        del context, signature
        once = builder.insert_element(_EMPTY, given[1], ir.Constant(ir.IntType(32), 0))
        product = builder.fmul(builder.shuffle_vector(once, _EMPTY, _FIRST), given[2], flags=("contract",))
        return builder.fadd(given[0], product, flags=("contract",))

    del typing, number  # which is cast
    return _LANES(total, types.float32, lanes), generate


@njit(**_PRODUCTS)
def multiply(out: Any, left: Any, right: Any, first: Any) -> None:
    """out = first + left @ right: [n, w] of [n, m or more] and [m, w], `first` [1, w] for all rows; w at least LANES.

    A sum runs over m in order, whichever block it is in. Where blocks do not fit, the last one is moved back, and some
    numbers are worked out twice.
    """
    n, width = left.shape[0], right.shape[1]
    for at in range(0, width, LANES):  # Why first: sixteen columns of `right` then stay in the cache
        column = min(at, width - LANES)
        if n < ROWS:
            for row in range(n):
                _multiply_row(out, left, right, first, row, column)
        else:
            for row in range(0, n, ROWS):
                _multiply_rows(out, left, right, first, min(row, n - ROWS), column)


@njit(**_PRODUCTS)
def _multiply_row(out: Any, left: Any, right: Any, first: Any, row: int, column: int) -> None:
    total = load_lanes(first, 0, column)
    for j in range(right.shape[0]):
        total = add_product(total, left[row, j], load_lanes(right, j, column))
    store_lanes(out, row, column, total)


@njit(**_PRODUCTS)
def _multiply_rows(out: Any, left: Any, right: Any, first: Any, row: int, column: int) -> None:
    a = b = c = d = e = f = load_lanes(first, 0, column)
    for j in range(right.shape[0]):
        lanes = load_lanes(right, j, column)
        a = add_product(a, left[row, j], lanes)
        b = add_product(b, left[row + 1, j], lanes)
        c = add_product(c, left[row + 2, j], lanes)
        d = add_product(d, left[row + 3, j], lanes)
        e = add_product(e, left[row + 4, j], lanes)
        f = add_product(f, left[row + 5, j], lanes)
    store_lanes(out, row, column, a)
    store_lanes(out, row + 1, column, b)
    store_lanes(out, row + 2, column, c)
    store_lanes(out, row + 3, column, d)
    store_lanes(out, row + 4, column, e)
    store_lanes(out, row + 5, column, f)
