"""The command line: one subcommand per stage, called by the workflow's rules."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from slimwise.commands import COMMANDS
from slimwise.engine_watch import end_with_the_engine
from slimwise.errors import SlimWiseError

_REFUSED = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, 2 for a failure that the user can mend, told in one line, 130 if stopped."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
        stream=sys.stderr,
    )
    # SIGTERM unwinds like Ctrl-C, so that a stage stops the servers it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    end_with_the_engine()
    try:
        arguments = _parser().parse_args(argv)
        arguments.run(arguments)
    except SlimWiseError as failure:
        print(f"slimwise: {failure}", file=sys.stderr)
        return _REFUSED
    except KeyboardInterrupt:
        print("slimwise: stopped; the same command resumes.", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slimwise", description=__doc__)
    stages = parser.add_subparsers(title="stages", required=True, metavar="<stage>")
    for command in COMMANDS:
        stage = stages.add_parser(command.name, help=command.summary, description=command.summary)
        stage.add_argument("--config", required=True, metavar="JSON", help="slice of the study")
        for flag in command.flags:
            flag.add_to(stage)
        stage.set_defaults(run=command.run)
    documents = stages.add_parser(
        "write-config", help="Write default.yaml, schema.json and README.md of config/."
    )
    documents.add_argument("--out", type=Path, default=Path("config"))
    documents.set_defaults(run=_write_config)
    verify = stages.add_parser("verify", help="Check that a checkpoint folder is whole.")
    verify.add_argument("model", type=Path)
    verify.set_defaults(run=_verify)
    return parser


def _verify(arguments: argparse.Namespace) -> None:
    from slimwise.export.verify_model import verify_model

    print(verify_model(arguments.model))


def _write_config(arguments: argparse.Namespace) -> None:
    from slimwise.config_documents import write_config_documents

    write_config_documents(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
