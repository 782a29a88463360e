"""Reading compiled programs, descriptions of GPUs, and what is said without the CUDA build."""

from __future__ import annotations

import pytest
from script_runner import run_here

from jaxzero.cli import load_config
from jaxzero.host.environment import has_cuda_build
from jaxzero.performance import gpu_compile
from jaxzero.performance.gpu_compile import Counted, gpu_named, known_gpus
from jaxzero.performance.gpu_prediction import (
    LAUNCH_SECONDS,
    READ_SECONDS,
    predict,
    report,
    result_of,
)
from jaxzero.performance.hlo import count_launches, read_program

TINY = ("configs/tiny.yaml", "--network.features=raw")
# As XLA writes it: a loop of 4 rounds, and one that ends when its data say so with a loop of 3
# rounds in it. The convolution is of the network, the fusion writes one row of an array in place.
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


def test_loops_are_read_with_their_rounds():
    program = read_program(HLO)
    assert [loop.rounds for loop in program.walk()] == [1, 4, None, 3]
    assert [loop.source for loop in program.unknown] == ["jit(program)/while"]
    assert [len(loop.kernels) for loop in program.walk()] == [2, 1, 2, 1]


def test_launches_are_counted_through_the_loops():
    launches = count_launches(read_program(HLO), lambda loop: 10)
    # Two fusions; 4 copies; ten times a convolution, the condition and 3 copies.
    assert launches.total == 2 + 4 + 10 * (1 + 1 + 3)
    assert launches.products == 10
    assert launches.reads_back == 11
    assert launches.by_source()["jit(program)/while/body/Network/conv"] == 10


def test_bytes_are_those_of_the_slices():
    written, read = read_program(HLO).kernels
    assert written.bytes == 2 * 4 * 8 + 4  # the row twice, where it goes; not the array
    assert read.bytes == 2 * 4 * 4 * 8 + 4 * 4  # the rows in and out, their numbers


@pytest.mark.parametrize("name", known_gpus())
def test_descriptions_are_whole(name):
    text = gpu_named(name).description()
    assert f'"NVIDIA {name}"' in text and text.count("{") == text.count("}")
    assert "core_count" in text and "None" not in text


def test_gpus_are_found_as_people_write_them():
    assert gpu_named("nvidia rtx 4060") == gpu_named("RTX4060") == known_gpus()["RTX 4060"]


def counted_example() -> Counted:
    launches = count_launches(read_program(HLO), lambda loop: 10)
    return Counted("iteration", read_program(HLO), launches, 2**20, 2**21, 2**22)


def test_a_prediction_says_that_it_is_one():
    config, gpu = load_config(*TINY), gpu_named("H200")
    found = predict(config, gpu, counted_example().launches)
    assert found.host == pytest.approx(11 * READ_SECONDS)
    assert found.others == pytest.approx(46 * LAUNCH_SECONDS)  # all but the 10 convolutions
    assert found.network + found.learning >= 10 * LAUNCH_SECONDS * 0.999
    text = report(result_of(config, gpu, [counted_example()]))
    assert "PREDICTED, not measured" in text and "nothing was run" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_slower_gpu_is_predicted_slower():
    config = load_config(*TINY, "--network.channels=2048")
    seconds = [
        predict(config, gpu_named(name), counted_example().launches).seconds
        for name in ("H200", "RTX 4090", "RTX 4060")
    ]
    assert seconds == sorted(seconds) and seconds[0] < seconds[-1]


@pytest.fixture
def no_cuda_build(monkeypatch):
    monkeypatch.setattr(gpu_compile, "has_cuda_build", lambda: False)


SCRIPTS = ("gpu_compile.py --config configs/tiny.yaml", "train.py --config tiny --predict_memory")


@pytest.mark.parametrize("command", SCRIPTS)
def test_without_the_cuda_build_one_line_says_what_to_install(command, no_cuda_build):
    done = run_here(*command.split(), "--target", "RTX 4060")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and 'pip install -e ".[cuda13]"' in done.stderr


@pytest.mark.parametrize("command", SCRIPTS)
def test_an_unknown_gpu_is_refused_with_those_that_are_known(command):
    done = run_here(*command.split(), "--target", "RTX 4061")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "target: 'RTX 4061'" in done.stderr and all(name in done.stderr for name in known_gpus())


def test_a_target_needs_predict_memory():
    done = run_here("train.py", "--target", "H200", "--run_dir", "runs/none")
    assert done.returncode == 2 and "target: H200 needs --predict_memory" in done.stderr


def test_an_unknown_part_is_refused():
    done = run_here("gpu_compile.py", "--config", "tiny", "--parts", "search,trees")
    assert done.returncode == 2 and "parts: 'trees'" in done.stderr


@pytest.mark.skipif(not has_cuda_build(), reason="needs the CUDA build of jax, but no GPU")
def test_a_part_compiles_without_a_gpu():
    config = load_config("configs/tiny.yaml", "--network.features=structure")
    device = gpu_compile.device_of(gpu_named("RTX 4060"))
    found = gpu_compile.count_part(config, "structure", device)
    assert found.launches.total > 0 and not found.program.unknown
