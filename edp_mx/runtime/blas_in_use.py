"""Which kernels NumPy's and MXNet's products have, and whether they are right."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Dict, Optional

import mxnet as mx
import numpy as np
from threadpoolctl import threadpool_info

from edp_mx.runtime.blas import NAME, WITHOUT_AVX, Processor

logger = logging.getLogger(__name__)


def kernels_in_use() -> Dict[str, Dict[str, Optional[str]]]:
    """Return the library behind NumPy's and MXNet's products, its version and its kernels."""
    loaded = [each for each in threadpool_info() if each["user_api"] == "blas"]
    found = {}
    for package in (np, mx):
        home = Path(str(package.__file__)).resolve().parent
        for each in loaded:
            folder = Path(each["filepath"]).resolve().parent
            if folder in (home, home.with_name(f"{home.name}.libs")):
                found[package.__name__] = {
                    "library": each["internal_api"],
                    "version": each["version"],
                    "kernels": each.get("architecture"),
                }
    return found


def warn_of_slow_kernels() -> None:
    """Log which products are slow without need.

    Either NumPy was loaded too early, or no better kernels were found right. There is no warning of
    kernels that the user has named in OPENBLAS_CORETYPE.
    """
    named, in_use = os.environ.get(NAME, "").lower(), kernels_in_use()
    kernels = {package: each["kernels"] or "" for package, each in in_use.items()}
    old = {package: name for package, name in kernels.items() if name in WITHOUT_AVX}
    slow = {package: name for package, name in old.items() if name.lower() != named}
    if slow and "avx" in Processor.read().flags:
        logger.warning(
            "%s multiply with old kernels (%s), several times slower than this processor can: "
            "import edp_mx before numpy and mxnet, or set %s before Python starts",
            " and ".join(slow),
            ", ".join(sorted(set(slow.values()))),
            NAME,
        )


def self_test(name: str) -> None:
    """Multiply with both libraries and compare with sums that NumPy makes by loops of its own.

    A library that has no kernels of that name may take others, but none without AVX: MXNet's, for
    one, has no SkylakeX.

    Raises:
        ArithmeticError: a product is wrong, or the libraries take other kernels.
    """
    taken = {each["kernels"] for each in kernels_in_use().values()}
    if name not in taken or WITHOUT_AVX & (taken - {name}):
        raise ArithmeticError(f"with {name} named, the libraries take {taken}")
    generator = np.random.RandomState(0)
    for rows, inner, columns in ((1, 1, 1), (3, 7, 5), (17, 64, 33), (64, 300, 129), (5, 700, 48)):
        left = generator.randn(rows, inner).astype(np.float32)
        right = generator.randn(inner, columns).astype(np.float32)
        turned = np.ascontiguousarray(right.T)
        theirs = [mx.nd.array(each) for each in (left, right, turned)]
        wide = left.astype(np.float64), right.astype(np.float64)
        exact = np.einsum("ij,jk->ik", *wide)
        most = np.einsum("ij,jk->ik", *map(np.abs, wide))
        products = [
            (left @ right, exact),
            (left @ turned.T, exact),
            (np.ascontiguousarray(left.T).T @ right, exact),
            (left @ right[:, 0], exact[:, 0]),
            (wide[0] @ wide[1], exact),
            (mx.nd.dot(theirs[0], theirs[1]).asnumpy(), exact),
            (mx.nd.dot(theirs[0], theirs[2], transpose_b=True).asnumpy(), exact),
        ]
        for found, true in products:
            bound = 1e-5 * (most if true.ndim == 2 else most[:, 0])
            if not (np.abs(found - true) <= bound).all():
                raise ArithmeticError(f"{name} multiplies {(rows, inner, columns)} wrong")
        own = np.einsum("ij,kj->ik", wide[0], wide[0])
        if not np.allclose(left @ left.T, own, rtol=0, atol=1e-5 * np.abs(own).max()):
            raise ArithmeticError(f"{name} multiplies {(rows, inner)} by itself wrong")
