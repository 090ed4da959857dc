"""Matrix instructions: fragments lie as the PTX ISA states it, and products are those of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worker.emulator.ptx import matrix_kernels
from tests.worker.emulator.ptx.machine import Launch, Programs, played, programs
from tests.worker.emulator.ptx.matrix_kernels import PRODUCTS, WHOLE, Product, Whole, drawn, stored
from worker.emulator.toolchain import Toolchain
from worker.sandbox import Sandbox


@pytest.fixture(scope="module")
def made(compiler: Toolchain, sandbox: Sandbox) -> Programs:
    del compiler
    return programs(matrix_kernels.module(), sandbox)


def _run(made: Programs, sandbox: Sandbox, kernel: str, given: np.ndarray, size: int) -> bytes:
    ran = played(made, sandbox, [Launch(kernel)], given, size)
    said = ran.finding.text if ran.finding else ran.finished.stderr.decode(errors="replace")
    assert ran.returned, f"{ran.finished.end}: {said}"
    return ran.written["written"]


@pytest.mark.parametrize(
    "at", range(len(PRODUCTS)), ids=lambda at: PRODUCTS[at].opcode.removeprefix("mma.sync.aligned.")
)
def test_a_product_of_fragments_is_exact(made: Programs, sandbox: Sandbox, at: int) -> None:
    product: Product = PRODUCTS[at]
    rng = np.random.default_rng(at)
    _, kind_a, kind_b, kind_c = product.kinds
    a, b = drawn(kind_a, (product.m, product.k), rng), drawn(kind_b, (product.k, product.n), rng)
    top = 1 << 31
    c = (
        rng.integers(top - 4000, top, (product.m, product.n))
        if "satfinite" in product.opcode
        else drawn(kind_c, (product.m, product.n), rng)
    )
    given = np.hstack([product.packed("a", a), product.packed("b", b), product.packed("c", c)])
    written = _run(made, sandbox, f"product{at}", given, 128 * product.counts["d"])
    got = np.frombuffer(written, np.uint32).reshape(32, -1)
    np.testing.assert_array_equal(got, product.packed("d", product.wanted(a, b, c)).reshape(32, -1))


@pytest.mark.parametrize("at", range(len(WHOLE)), ids=lambda at: str(WHOLE[at]))
def test_a_product_of_matrices_in_memory_is_exact(made: Programs, sandbox: Sandbox, at: int) -> None:
    whole: Whole = WHOLE[at]
    (m, n, k), rng = whole.sizes, np.random.default_rng(at)
    a, b, c = drawn(whole.factor, (m, k), rng), drawn(whole.factor, (k, n), rng), drawn(whole.sum, (m, n), rng)
    wanted = a @ b + c
    expected = stored(whole.sum, wanted if whole.c_by == "row" else wanted.T)
    given = np.frombuffer(whole.given(a, b, c), np.uint8)
    assert _run(made, sandbox, f"whole{at}", given, len(expected)) == expected


def test_rows_are_handed_out_and_gathered(made: Programs, sandbox: Sandbox) -> None:
    given = np.random.default_rng(3).integers(0, 1 << 32, (32, 4)).astype(np.uint32)
    wanted = matrix_kernels.moved(given)
    got = np.frombuffer(_run(made, sandbox, "moves", given, wanted.nbytes), np.uint32).reshape(wanted.shape)
    np.testing.assert_array_equal(got, wanted)
