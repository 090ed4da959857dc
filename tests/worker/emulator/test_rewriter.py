"""The source rewriter: what it changes, what it leaves, where it refuses, and that its cost does not explode."""

from __future__ import annotations

import contextlib
import time

import pytest

from worker.emulator.toolchain import rewriter


def rewritten(source: str) -> str:
    return str(rewriter().rewrite(source, "k.cu").text)


def refusal(source: str) -> Exception:
    module = rewriter()
    with pytest.raises(module.RewriteError) as caught:
        module.rewrite(source, "k.cu")
    return caught.value


def test_a_launch_keeps_its_arguments_in_place_and_in_line() -> None:
    source = "void f() {\n  k<T, 4><<<dim3(2,\n 3), 32, 0, s>>>(a,\n b + 1);\n}\n"
    text = rewritten(source)
    assert '__LINE__, "k<T,4>", dim3(2,\n 3), 32, 0, s)(a,\n b + 1);' in text
    assert "[&](auto... emulator_a) { k<T, 4>(emulator_a...); }" in text


@pytest.mark.parametrize(
    ("launch", "callee"),
    [
        ("ns::k<1><<<1, 2>>>(x);", "ns::k<1>"),
        ("object.member<<<1, 2>>>();", "object.member"),
        ("(pick(3))<<<1, 2>>>(x);", "(pick(3))"),
        ("table[i]<<<1, 2>>>(x);", "table[i]"),
        ("k<A<B>><<<n >> 1, 2>>>(x);", "k<A<B>>"),
        ("return k<<<1, 2>>>(x);", "k"),
    ],
)
def test_a_kernel_is_found_in_every_spelling(launch: str, callee: str) -> None:
    assert f"emulator_a) {{ {callee}(emulator_a...); }}" in rewritten(f"void f() {{ {launch} }}")


def test_null_arguments_stay_convertible() -> None:
    text = rewritten("void f() { k<<<1, 2>>>(NULL, 0, g(0)); }")
    assert "(::emulator::Zero{}, ::emulator::Zero{}, g(0))" in text


def test_a_launch_inside_a_macro_is_rewritten() -> None:
    text = rewritten("#define RUN(k, ...) \\\n  k<<<1, 32>>>(__VA_ARGS__)\n")
    assert "#define RUN(k, ...) \\\n" in text
    assert "::emulator::launch(" in text


def test_shared_variables_become_typedefs_with_references() -> None:
    text = rewritten("__global__ void k() { __shared__ float a[2][33], b; a[0][0] = b; }")
    assert "typedef float emulator_t_a[2][33], emulator_t_b;" in text
    assert "EMULATOR_SHARED(emulator_t_a, a); EMULATOR_SHARED(emulator_t_b, b);" in text


def test_dynamic_shared_memory_is_a_pointer_into_the_arena() -> None:
    inside = rewritten("__global__ void k() { extern __shared__ __align__(16) char raw[]; }")
    assert "typedef __align__(16) char emulator_t_raw[];" in inside
    assert "raw = reinterpret_cast<::std::remove_extent_t<emulator_t_raw>*>" in inside
    assert "static ::emulator::DynamicView emulator_d_s" in rewritten("extern __shared__ float s[];\n")


def test_variables_are_announced_and_functions_are_not() -> None:
    text = rewritten("__device__ float a[4], *b;\n__constant__ int c = 3;\n__device__ float f(float x) { return x; }\n")
    assert all(f"emulator_v_{name}" in text for name in "abc")
    assert "emulator_v_f" not in text
    assert '"c", 2, true' in text


def test_plain_kernels_are_announced_and_templates_are_not() -> None:
    text = rewritten("__global__ void plain(int) { }\ntemplate <int N> __global__ void shaped(int) { }\n")
    assert 'emulator_k_plain{&plain, "plain"}' in text
    assert "emulator_k_shaped" not in text


def test_waiting_loops_let_others_run() -> None:
    assert "while (flag == 0) { ::emulator::spin(__LINE__); }" in rewritten("void f() { while (flag == 0) ; }")
    assert "while (x);" in rewritten("void f() { do { g(); } while (x); }")


def test_comments_strings_and_raw_strings_are_left_alone() -> None:
    source = 'const char* s = "k<<<1, 2>>>(x)"; // k<<<1, 2>>>(x)\n/* __shared__ */ auto r = R"x(__shared__ <<<)x";\n'
    assert source in rewritten(source)


def test_line_numbers_do_not_move() -> None:
    source = "\n".join(
        f"__device__ int v{i}; __global__ void k{i}() {{ __shared__ int a[4]; a[0] = {i}; }}" for i in range(40)
    )
    text = rewritten(source)
    assert [line for line, part in enumerate(text.splitlines()) if "void k39()" in part] == [40]


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ('void f() {\n  asm volatile("mov.u32 %0, %laneid;" : "=r"(x)); }', 2, "inline assembly ('mov.u32"),
        ("#include <cub/cub.cuh>\n", 1, "CUB"),
        ("\n#include <thrust/sort.h>\n", 2, "Thrust"),
        ("__global__ void k() {\n __shared__ int a = 3; }", 2, "cannot have an initialiser"),
        ("void f() { k<<<1, 2>>> ; }", 1, "needs an argument list"),
        ("void f() { k<<<1, 2; }", 1, "`<<<` without its `>>>`"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_with_its_line(source: str, line: int, words: str) -> None:
    error = refusal(source)
    assert error.line == line  # type: ignore[attr-defined]
    assert words in str(error)


def test_a_compiler_barrier_is_no_ptx() -> None:
    assert 'asm volatile("" ::: "memory");' in rewritten('void f() { asm volatile("" ::: "memory"); }')


@pytest.mark.parametrize(
    "source",
    [
        "__shared__ " * 20_000,
        "__device__ " * 20_000,
        "while(x)" * 30_000,
        "k<<<1,1>>>(" * 20_000,
        "<" * 250_000,
        "{" * 500 + "a;" * 100_000,
    ],
    ids=["shared", "device", "while", "nested launches", "angles", "braces"],
)
def test_hostile_sources_cost_linear_time(source: str) -> None:
    module = rewriter()
    start = time.process_time()
    with contextlib.suppress(module.RewriteError):
        module.rewrite(source, "k.cu")
    assert time.process_time() - start < 12
