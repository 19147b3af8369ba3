"""Sixteen float32 numbers in one register, for Numba: what a loop cannot say so that the compiler always uses vectors.

    total = load(row, 0) * load(params, 0) + splat(bias)
    nearest = select(mask_less(row, bound), row, splat(0))

The operations are LLVM's own on vectors of sixteen: one AVX-512 register, two of AVX2, four of NEON or SSE, and
ordinary instructions where there are none. A mask is a whole number, bit i for lane i. Arrays are read and written at
a place counted over the whole array, and must have room for all lanes from there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 16
_VECTOR, _BITS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(1), LANES)
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class LanesType(types.Type):
    """As Numba knows it."""


lanes = LanesType("lanes")


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """As LLVM knows it."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _define(symbol: Callable[..., Any], build: Callable[[Any, Any, Any], Any]) -> None:
    """lanes symbol lanes"""
    template = type("LanesTemplate", (ConcreteTemplate,), {"cases": [signature(lanes, lanes, lanes)]})
    infer_global(symbol)(template)
    lower_builtin(symbol, lanes, lanes)(lambda _context, builder, _kinds, values: build(builder, *values))


_define(operator.add, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_define(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


def _operation(result: Any, *kinds: Any) -> Callable[..., Any]:
    """An intrinsic of these types (None: whatever array comes) from a function that writes its instructions."""

    def make(build: Callable[..., Any]) -> Any:
        def known(*given: Any) -> Any:
            own = [kind or came for kind, came in zip(kinds, given, strict=True)]

            def write(context: Any, builder: Any, _: Any, values: Any) -> Any:
                places = [
                    _point(context, builder, k, v) if isinstance(k, types.Array) else v
                    for k, v in zip(own, values, strict=True)
                ]
                return build(builder, *places)

            return result(*own), write

        # Why spelt out: Numba looks at how many arguments an intrinsic has
        forms = {1: lambda _, a: known(a), 2: lambda _, a, b: known(a, b), 3: lambda _, a, b, c: known(a, b, c)}
        form = forms[len(kinds)]
        form.__name__ = build.__name__
        return intrinsic(form)

    return make


def _point(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _at(builder: Any, data: Any, place: Any) -> Any:
    return builder.bitcast(builder.gep(data, [place]), _VECTOR.as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))


def _as_bits(builder: Any, mask: Any) -> Any:
    return builder.bitcast(builder.trunc(mask, ir.IntType(LANES)), _BITS)


@_operation(lanes, None, types.int64)
def load(builder: Any, data: Any, place: Any) -> Any:
    return builder.load(_at(builder, data, place), align=4, typ=_VECTOR)


@_operation(lanes, None, types.int64, types.int64)
def load_some(builder: Any, data: Any, place: Any, mask: Any) -> Any:
    """The lanes of the mask, 0 in the others; what lies there is not touched and need not exist."""
    name, at = f"llvm.masked.load.v{LANES}f32.p0", _at(builder, data, place)
    kind = ir.FunctionType(_VECTOR, [at.type, _I32, _BITS, _VECTOR])
    return builder.call(
        get_or_insert_function(builder.module, kind, name), [at, _I32(4), _as_bits(builder, mask), _VECTOR(None)]
    )


@_operation(types.int64, None, types.int64, lanes)
def store(builder: Any, data: Any, place: Any, value: Any) -> Any:
    builder.store(value, _at(builder, data, place), align=4)
    return _I64(0)


@_operation(lanes, types.float32)
def splat(builder: Any, value: Any) -> Any:
    """The same number in every lane."""
    return _spread(builder, value)


@_operation(lanes, None, types.int64)
def spread(builder: Any, data: Any, place: Any) -> Any:
    """The number at a place in every lane. Why not `splat(array[place])`: Numba asks whether a place is negative."""
    return _spread(builder, builder.load(builder.gep(data, [place]), align=4))


@_operation(lanes, lanes, lanes, lanes)
def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once where the processor can."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32"), [a, b, c])


@_operation(lanes, lanes, lanes)
def least(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@_operation(lanes, lanes, lanes)
def greatest(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@_operation(lanes, types.int64, lanes, lanes)
def select(builder: Any, mask: Any, a: Any, b: Any) -> Any:
    """a where the bit is set, b elsewhere."""
    return builder.select(_as_bits(builder, mask), a, b)


@_operation(types.int64, lanes, lanes)
def mask_less(builder: Any, a: Any, b: Any) -> Any:
    return builder.zext(builder.bitcast(builder.fcmp_ordered("<", a, b), ir.IntType(LANES)), _I64)


@_operation(types.float32, lanes)
def add_up(builder: Any, a: Any) -> Any:
    """The sum over the lanes, in a fixed order: halves are added until one is left."""
    width = LANES
    while width > 1:
        width //= 2
        halves = [ir.Constant(ir.VectorType(_I32, width), list(range(first, first + width))) for first in (0, width)]
        a = builder.fadd(*(builder.shuffle_vector(a, a, half) for half in halves))
    return builder.extract_element(a, _I32(0))


@_operation(types.int64, types.int64)
def count_bits(builder: Any, mask: Any) -> Any:
    return builder.ctpop(mask)


@_operation(types.int64, types.int64)
def lowest_bit(builder: Any, mask: Any) -> Any:
    """Where the lowest bit that is set stands; there must be one."""
    return builder.cttz(mask, ir.IntType(1)(1))
