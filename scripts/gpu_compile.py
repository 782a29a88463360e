"""Compile a config for a GPU that is not there; count launches, loops of unknown length, memory.

Needs the CUDA build of jax and no GPU; nothing is run.
Example: jaxzero gpu_compile --config configs/gpu_8gb.yaml --target "RTX 4060"
"""

from __future__ import annotations

from jaxzero.host.interrupts import install

if __name__ == "__main__":
    install()  # first: the imports below take a second

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA logs its search for a GPU at length

from jaxzero.cli import config_of, config_parser, parse, run_script
from jaxzero.config.ranges import split_list
from jaxzero.errors import InputError, shortened
from jaxzero.host.files import write_json
from jaxzero.runs.run_dir import JSON, check_result_file


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--target", default="H200", help="GPU to compile for, such as 'RTX 4060'")
    parser.add_argument(
        "--parts",
        default="",
        help="comma list of structure, network, search, update, iteration; default: all",
    )
    parser.add_argument("--json", type=Path, help="file to write the counts to")
    options = parse(parser, arguments)
    config = config_of(parser, options)
    check_result_file("json", options.json, JSON)

    from jaxzero.performance.gpu_compile import (
        PARTS,
        compile_result,
        count_part,
        device_of,
        gpu_named,
        report,
    )

    parts = split_list("parts", options.parts) or list(PARTS)
    for part in parts:
        if part not in PARTS:
            raise InputError(f"parts: {shortened(repr(part))} is none of {', '.join(PARTS)}")
    gpu = gpu_named(options.target)
    device = device_of(gpu)
    result = compile_result(config, gpu, {part: count_part(config, part, device) for part in parts})
    print(report(result))
    if options.json:
        write_json(options.json, result)


if __name__ == "__main__":
    run_script(main)
