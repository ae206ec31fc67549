"""The command line: a subcommand for each stage, called by the workflow's rules, and a few more."""

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slimwise.commands import COMMANDS
from slimwise.core.vocabulary import Deployment, Phase, ServingMode
from slimwise.engine.api_key import API_KEY_VARIABLE
from slimwise.engine.proxies import reach_directly
from slimwise.engine_watch import end_with_the_engine
from slimwise.errors import ConfigError, SlimWiseError

_REFUSED = 2
_INTERRUPTED = 130
_INIT_SUMMARY = "Write the overlay that begins a study of a local model."
_SERVE_SUMMARY = "Serve a decoder until Ctrl-C, on one server or with prefill and decode apart."


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
    reach_directly()
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
    _add_serve(stages.add_parser("serve", help=_SERVE_SUMMARY, description=_SERVE_SUMMARY))
    verify = stages.add_parser("verify", help="Check that a checkpoint folder is whole.")
    verify.add_argument("model", type=Path, help="folder of a model, exported or not")
    verify.set_defaults(run=_verify)
    _add_init(stages.add_parser("init", help=_INIT_SUMMARY, description=_INIT_SUMMARY))
    report = stages.add_parser("report", help="Write one page about a finished study.")
    report.add_argument("study", type=Path, help="folder of the study's results")
    report.add_argument("--paper", type=Path, help="the paper's results, where not those shipped")
    report.add_argument("--out", type=Path, help="the page, where not 80_report/report.html there")
    report.set_defaults(run=_report)
    plan = stages.add_parser("plan", help="Tell GPU hours and disk that a study will take.")
    plan.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        default=[Path("config/mini.yaml")],
        help="overlay of the study; else config/mini.yaml",
    )
    plan.set_defaults(run=_plan)
    return parser


def _add_init(init: argparse.ArgumentParser) -> None:
    init.add_argument("model", type=Path, help="folder of the model; names the study")
    init.add_argument("--chats", type=Path, help="folder of conversations; else the paper's data")
    init.add_argument("--num-kept", type=int, help="experts kept in each layer; else half of them")
    init.add_argument("--steps", type=int, default=8000, help="of distillation; the paper's 8000")
    init.add_argument(
        "--out", type=Path, default=Path("config"), help="folder of the overlay; else config"
    )
    init.set_defaults(run=_init)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("model", type=Path, help="folder of the full model")
    serve.add_argument("--mode", type=ServingMode, choices=list(ServingMode), required=True)
    serve.add_argument("--keep-set", type=Path, help="experts that a pruned phase keeps")
    serve.add_argument("--trained", type=Path, help="what distillation trained for that keep set")
    serve.add_argument(
        "--deployment", type=Deployment, choices=list(Deployment), default=Deployment.COLOCATED
    )
    serve.add_argument(
        "--decode-checkpoint", type=Path, help="exported folder that holds only kept experts"
    )
    serve.add_argument(
        "--phase",
        type=Phase,
        choices=list(Phase),
        help="serve only that phase, for a deployment of another host",
    )
    serve.add_argument("--port", type=int, default=8000, help="else 8000; 0 takes a free one")
    serve.add_argument(
        "--max-model-len", type=int, default=4096, help="prompt plus output, tokens; else 4096"
    )
    serve.add_argument(
        "--api-key", help=f"asked of every request; the variable {API_KEY_VARIABLE} tells nobody"
    )
    serve.add_argument(
        "--logs", type=Path, default=Path("logs"), help="folder of servers' output; else logs"
    )
    for section in ("serving", "disaggregation"):
        words = f"further keys of section {section} in config/README.md"
        serve.add_argument(f"--{section}", default="{}", metavar="JSON", help=words)
    serve.set_defaults(run=_serve)


def _serve(arguments: argparse.Namespace) -> None:
    from slimwise.config import parse_slice
    from slimwise.engine.command import SERVED_NAME
    from slimwise.engine.config import DisaggregationConfig, ServingConfig
    from slimwise.serve.plan import Served
    from slimwise.serve.run import run

    if arguments.api_key == "":
        raise ConfigError("--api-key is empty: name a key, or leave it out to answer everybody.")
    if arguments.api_key is not None:
        os.environ[API_KEY_VARIABLE] = arguments.api_key
    named = {"port": arguments.port, "max_model_len_tokens": arguments.max_model_len}
    further = _json_object("--serving", arguments.serving)
    if twice := sorted(named.keys() & further):
        raise ConfigError(f"--serving names {twice[0]}, which has a flag of its own: use that.")
    serving = json.dumps(named | further)
    disaggregation = json.dumps(_json_object("--disaggregation", arguments.disaggregation))
    names = ("model", "mode", "deployment", "keep_set", "trained", "decode_checkpoint", "phase")
    run(
        Served(**{name: getattr(arguments, name) for name in names}),
        serving=parse_slice(ServingConfig, serving),
        layout=parse_slice(DisaggregationConfig, disaggregation),
        logs=arguments.logs,
        on_ready=lambda url: print(f"{url}/v1 serves the model {SERVED_NAME}", flush=True),
    )


def _json_object(flag: str, text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError) as failure:
        raise ConfigError(
            f"{flag} {text!r} is no JSON object: {failure}. Write it like '{{\"key\": 2}}'."
        ) from failure


def _verify(arguments: argparse.Namespace) -> None:
    from slimwise.export.verify_model import verify_model

    print(verify_model(arguments.model))


def _init(arguments: argparse.Namespace) -> None:
    from slimwise.study_overlay import Choices, write_overlay

    choices = Choices(arguments.chats, arguments.num_kept, arguments.steps)
    print(write_overlay(arguments.model, choices, arguments.out))


def _report(arguments: argparse.Namespace) -> None:
    from slimwise.paths import PAPER_RESULTS, StudyPaths
    from slimwise.provenance import SOURCE_ROOT
    from slimwise.report.page.run import write_report

    study: Path = arguments.study
    out: Path = arguments.out or StudyPaths(study).report
    write_report(study, paper=arguments.paper or SOURCE_ROOT.parent / PAPER_RESULTS, out=out)


def _plan(arguments: argparse.Namespace) -> None:
    from slimwise.study_plan.run import study_plan

    print(study_plan(arguments.configfile))


def _write_config(arguments: argparse.Namespace) -> None:
    from slimwise.config_documents import write_config_documents

    write_config_documents(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
