"""Train an AlphaZero for Dots and Boxes."""

from __future__ import annotations

from pathlib import Path

from jaxzero.cli import config_of, config_parser, parse, run_script, use_compilation_cache


def main(arguments: list[str]) -> None:
    parser = config_parser(__doc__)
    parser.add_argument("--run_dir", type=Path, required=True, help="folder of the run's files")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the newest checkpoint, with the run's own config unless --config is given",
    )
    parser.add_argument(
        "--max_minutes", type=float, default=0.0, help="save and stop after so long; 0: never"
    )
    options = parse(parser, arguments)
    saved = options.run_dir / "config.yaml"
    if options.resume and not options.config and saved.exists():
        options = parse(parser, ["--config", str(saved), *arguments])
    config = config_of(parser, options)

    from jaxzero.training.stop import Stop
    from jaxzero.training.trainer import train

    use_compilation_cache()
    train(config, options.run_dir, options.resume, Stop(options.max_minutes))


if __name__ == "__main__":
    run_script(main)
