"""What a program gives the library, refused in a sentence before anything is written or trained."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.units import name_of
from edp_mx.errors import UserError


def refuse_arguments(
    net: Any,
    loss: Any,
    plan: Any,
    optimizer: Any,
    settings: Dict[str, Any],
    *,
    chunk_size: Any,
    seed: Any,
) -> None:
    """Refuse arguments of another kind than `PrivateTraining` takes.

    Of a loss, parameters of its own; of an optimizer, a name that MXNet does not know, and settings
    that it does not have.
    """
    if not isinstance(net, gluon.Block):
        raise UserError(f"net is a {type(net).__name__}: give a network of Gluon, a gluon.Block")
    if isinstance(loss, gluon.Block):
        of_net = {id(each) for each in net.collect_params().values()}
        for name, each in loss.collect_params().items():
            if each.grad_req != "null" and id(each) not in of_net:
                raise UserError(
                    f"{name} is a parameter of the loss, which would not be trained: make it one "
                    'of the network, or freeze it (grad_req "null")'
                )
    if not isinstance(plan, Plan):
        raise UserError(f"plan is a {type(plan).__name__}: give what make_plan returns")
    for name, value, least in (("chunk_size", chunk_size, 1), ("seed", seed, 0)):
        if not _is_whole(value) or value < least:
            raise UserError(f"{name} is {value!r}; it must be a whole number from {least}")
    try:
        if not isinstance(optimizer, mx.optimizer.Optimizer):
            mx.optimizer.create(optimizer, **settings)
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        raise UserError(
            f"the optimizer {optimizer!r} cannot be made with optimizer_params={settings!r} "
            f"({error}): give a name that MXNet knows, and settings of that optimizer"
        ) from error


def users_of(users: Any, most: Any, *, is_unit: bool) -> Optional[np.ndarray]:
    """Return the number of each example's user, (N,); None where examples are protected.

    Users of a plan that does not protect them are refused, and a plan of users without them.
    """
    if not is_unit:
        if users is None and most is None:
            return None
        raise UserError(
            "users were given, but the plan protects single examples: take one from "
            'make_plan(unit="user", num_examples=…), with the number of users'
        )
    if users is None or any(user is None for user in users):
        raise UserError("the unit user needs the user of each example: give users")
    if not _is_whole(most) or most < 1:
        raise UserError(
            f"max_examples_per_user is {most!r}: the unit user needs a whole number from 1, of the "
            "examples of a user that a step takes at most"
        )
    return np.unique(list(map(name_of, users)), return_inverse=True)[1]


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def refuse_without_items(dataset: Any) -> None:
    """Refuse what has no length or no items by number, such as a `DataLoader`."""
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise UserError(
            f"batches() was given a {type(dataset).__name__}: give it the data set itself, which "
            "has a length and items; the batches are drawn here, by no DataLoader or generator"
        )


class Drawn(Dict[int, Any]):
    """The items of a data set by their numbers, each drawn once: a second draw may be another."""

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        self._dataset = dataset

    def __missing__(self, record: int) -> Any:
        return self.setdefault(record, self._dataset[record])


def arrays_of(
    dataset: Any, records: np.ndarray, batchify: Callable[[List[Any]], Any], net: gluon.Block
) -> Sequence[mx.nd.NDArray]:
    """Return the arrays of a batch of some items of the data set, where the network is.

    Edge cases: float64, NumPy's default, becomes float32, in which the network is.
    """
    try:
        context = net.collect_params().list_ctx()[0]
    except RuntimeError as error:
        raise UserError(f"call net.initialize() before batches() ({error})") from error
    items = [dataset[int(record)] for record in records]
    try:
        arrays = batchify(items)
        if not isinstance(arrays, (list, tuple)) or len(arrays) < 2:
            raise UserError("an item of the data set must be (input, …, label)")
        made = [
            mx.nd.array(a, ctx=context, dtype=np.float32 if a.dtype == np.float64 else a.dtype)
            for a in arrays
        ]
        for array in made:
            array.wait_to_read()  # MXNet looks at the shapes that it stacks only then
        return made
    except (AttributeError, KeyError, TypeError, ValueError, mx.MXNetError) as error:
        raise UserError(
            f"{len(items)} items of the data set make no batch ({type(error).__name__}): "
            "batchify_fn must make arrays of numbers of one shape, for instance by padding"
        ) from error
