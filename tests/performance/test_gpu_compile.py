"""Test reading compiled programs, GPU descriptions, and the error without the CUDA build."""

from __future__ import annotations

import pytest
from script_runner import run_here

from jaxzero.cli import load_config
from jaxzero.host.environment import has_cuda_build
from jaxzero.performance import gpu_compile
from jaxzero.performance.gpu_compile import GPUS, compile_result, gpu_named, report
from jaxzero.performance.hlo import count_launches, read_program

TINY = ("configs/tiny.yaml", "--network.features=raw")
# As XLA writes it: a loop of 4 rounds, and a loop of unknown length that contains a loop of 3
# rounds. The convolution belongs to the network. One fusion writes a row of an array in place.
HLO = """HloModule jit_program, is_scheduled=true

%fused_write (p.0: f32[100,8], p.1: f32[1,8], p.2: s32[]) -> f32[100,8] {
  %p.0 = f32[100,8]{1,0} parameter(0)
  %p.1 = f32[1,8]{1,0} parameter(1)
  %p.2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %write = f32[100,8]{1,0} dynamic-update-slice(%p.0, %p.1, %p.2, %zero)
}

%fused_read (p.3: f32[100,8], p.4: s32[4,1]) -> f32[4,8] {
  %p.3 = f32[100,8]{1,0} parameter(0)
  %flat = f32[100,8]{1,0} bitcast(%p.3)
  %p.4 = s32[4,1]{1,0} parameter(1)
  ROOT %read = f32[4,8]{1,0} gather(%flat, %p.4), offset_dims={1}
}

%fused_more (p.5: s32[]) -> pred[] {
  %p.5 = s32[] parameter(0)
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%p.5, %ten), direction=LT
}

%body_3 (arg.0: (s32[], f32[100,8])) -> (s32[], f32[100,8]) {
  %arg.0 = (s32[], f32[100,8]{1,0}) parameter(0)
  %number.0 = s32[] get-tuple-element(%arg.0), index=0
  %copy.0 = s32[] copy(%number.0)
  ROOT %tuple.0 = (s32[], f32[100,8]{1,0}) tuple(%copy.0)
}

%body_u (arg.1: (s32[], f32[100,8])) -> (s32[], f32[100,8]) {
  %arg.1 = (s32[], f32[100,8]{1,0}) parameter(0)
  %conv = (bf16[4,6,6,2]{3,2,1,0}, u8[0]{0}) custom-call(%arg.1), custom_call_target="__cudnn$convBiasActivationForward", metadata={op_name="jit(program)/while/body/Network/conv"}
  ROOT %while.3 = (s32[], f32[100,8]{1,0}) while(%arg.1), condition=%less_3, body=%body_3, metadata={op_name="jit(program)/while/body/while"}, backend_config={"known_trip_count":{"n":"3"}}
}

%more_u (arg.2: (s32[], f32[100,8])) -> pred[] {
  %arg.2 = (s32[], f32[100,8]{1,0}) parameter(0)
  %number.2 = s32[] get-tuple-element(%arg.2), index=0
  ROOT %more = pred[] fusion(%number.2), kind=kLoop, calls=%fused_more
}

ENTRY %main (array: f32[100,8], row: f32[1,8], at: s32[]) -> (s32[], f32[100,8]) {
  %array = f32[100,8]{1,0} parameter(0)
  %row = f32[1,8]{1,0} parameter(1)
  %at = s32[] parameter(2)
  %written = f32[100,8]{1,0} fusion(%array, %row, /*index=2*/%at), kind=kLoop, calls=%fused_write, metadata={op_name="jit(program)/scatter"}
  %start = (s32[], f32[100,8]{1,0}) tuple(%at, %written)
  %while.4 = (s32[], f32[100,8]{1,0}) while(%start), condition=%less_4, body=%body_3, backend_config={"known_trip_count":{"n":"4"}}
  %few = f32[4,8]{1,0} fusion(%written, %rows), kind=kLoop, calls=%fused_read
  ROOT %while.u = (s32[], f32[100,8]{1,0}) while(%while.4), condition=%more_u, body=%body_u, metadata={op_name="jit(program)/while"}
}
"""  # noqa: E501


def test_loops_and_launches_are_read():
    program = read_program(HLO)
    assert [loop.rounds for loop in program.walk()] == [1, 4, None, 3]
    assert [loop.source for loop in program.unknown] == ["jit(program)/while"]
    launches = count_launches(program, lambda loop: 10)
    # Two fusions; 4 copies; ten times a convolution, the condition and 3 copies.
    assert launches.total == 2 + 4 + 10 * (1 + 1 + 3)
    assert launches.products == 10 and launches.reads_back == 11
    assert all(loop.kernels[0].of_network == (loop.rounds is None) for loop in program.walk())


def test_gpus_are_found_as_people_write_them_and_described():
    assert gpu_named("nvidia rtx 4060") == gpu_named("RTX4060") == GPUS[0]
    for gpu in GPUS:
        text = gpu.description()
        assert f'"NVIDIA {gpu.name}"' in text and text.count("{") == text.count("}")
        assert "None" not in text


def test_what_is_counted_is_reported():
    part = {"launches": 56, "launches_of_products": 10, "loops_of_unknown_length": ["a/while"]}
    part |= {"reads_back": 11, "memory_bytes": 3 * 2**20}
    result = compile_result(load_config(*TINY), gpu_named("H200"), {"iteration": part})
    row, verdict = report(result).splitlines()[-2:]
    assert row.split() == ["iteration", "56", "10", "1", "11", "3", "MiB"]
    assert verdict.startswith("an iteration fits ")
    part["memory_bytes"] *= 2**16
    assert "does NOT fit" in report(result)


def test_what_is_missing_is_one_line(monkeypatch):
    monkeypatch.setattr(gpu_compile, "has_cuda_build", lambda: False)
    for target, said in (("RTX 4060", 'pip install -e ".[cuda13]"'), ("RTX 4061", "RTX 4090")):
        done = run_here("gpu_compile.py", "--config", "tiny", "--target", target)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: target: ") and said in done.stderr


@pytest.mark.skipif(not has_cuda_build(), reason="needs the CUDA build of jax, but no GPU")
def test_a_part_compiles_without_a_gpu():
    config = load_config("configs/tiny.yaml", "--network.features=structure")
    device = gpu_compile.device_of(gpu_named("RTX 4060"))
    found = gpu_compile.count_part(config, "structure", device)
    assert found["launches"] > 0 and not found["loops_of_unknown_length"]
