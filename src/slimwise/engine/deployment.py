"""What answers requests: one server, or a prefill server, a decode server and a router.

No server is started on an exported checkpoint that is not, byte by byte, what its manifest says.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from slimwise.artifacts.manifest import verify_if_exported
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.engine.api_key import refuse_other_keys
from slimwise.engine.command import NO_POOLS, Device, Host, server_command, this_host
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.kv_check import refuse_other_cache, refuse_other_geometry
from slimwise.engine.kv_transfer import CHECKPOINT_NAME, with_kv_transfer
from slimwise.engine.ports import reserved_port
from slimwise.engine.process import RunningServers, Server, run_servers
from slimwise.engine.proxies import reach_directly
from slimwise.engine.router import router_command
from slimwise.errors import EngineError
from slimwise.gpu_lease import VISIBLE, leased_gpus


@dataclass(frozen=True)
class ServedModel:
    """What a server loads: a model folder, its pools, and the mode of requests that name none.

    Paths are absolute.
    """

    folder: Path
    pools: Mapping[str, PoolFiles | Path] = field(default_factory=lambda: NO_POOLS)
    default_mode: ServingMode = ServingMode.FULL


@dataclass(frozen=True)
class RunningDeployment:
    """Where requests go, and the servers behind that address, of which some may run elsewhere.

    started are those that run here, the one at that address last.
    """

    base_url: str
    prefill_urls: tuple[str, ...]
    decode_urls: tuple[str, ...]
    started: tuple[Server, ...]
    running: RunningServers


@contextmanager
def serve(
    model: Path, config: ServingConfig, log: Path, pools: Mapping[str, PoolFiles | Path] = NO_POOLS
) -> Iterator[str]:
    """The base URL of one server of the model folder, as serve_colocated starts it."""
    with serve_colocated(ServedModel(model, pools), config, log) as deployment:
        yield deployment.base_url


@contextmanager
def serve_colocated(
    model: ServedModel, config: ServingConfig, log: Path
) -> Iterator[RunningDeployment]:
    """Both phases on one server, healthy for as long as the block runs.

    Its output is kept in the log file. ArtifactError before the start if the model is an exported
    checkpoint that has changed; EngineError with the last lines of the log if the server ends or is
    not healthy in time, also if it ends during the block.
    """
    verify_if_exported(model.folder)
    reach_directly([config.host])
    host = this_host()
    with reserved_port(config.host, config.port) as port, _gpus(host, config) as gpus:
        command = server_command(
            model.folder,
            config,
            port=port,
            parent=os.getpid(),
            host=host,
            pools=model.pools,
            default_mode=model.default_mode,
        )
        url = f"http://{config.host}:{port}"
        server = Server("the server", command.with_environment(gpus), url, log)
        with run_servers([server], start_timeout_s=config.start_timeout_s) as running:
            yield RunningDeployment(url, (url,), (url,), (server,), running)


@contextmanager
def serve_disaggregated(
    prefill: ServedModel,
    decode: ServedModel,
    config: ServingConfig,
    layout: DisaggregationConfig,
    folder: Path,
) -> Iterator[RunningDeployment]:
    """All but the last token of a prompt on one model, the rest on the other, at one address.

    The folder keeps each server's output. Servers that the layout gives addresses of are waited
    for and used, not started. CheckpointError before any start if the models cannot share a cache,
    and else as serve_colocated.
    """
    refuse_other_geometry(prefill.folder, decode.folder, config)
    with ExitStack() as held:
        site = _Site(config, layout, folder, held)
        prefills = [] if layout.prefill_urls else [site.server(Phase.PREFILL, prefill)]
        decodes = [] if layout.decode_urls else [site.server(Phase.DECODE, decode)]
        prefill_urls = layout.prefill_urls or _urls(prefills)
        decode_urls = layout.decode_urls or _urls(decodes)
        timeout_s = config.start_timeout_s
        running = held.enter_context(run_servers([*prefills, *decodes], start_timeout_s=timeout_s))
        running.wait_for_others((*layout.prefill_urls, *layout.decode_urls), timeout_s)
        refuse_other_keys((*prefill_urls, *decode_urls))
        refuse_other_cache(prefill_urls, decode_urls)
        router = site.router(prefill_urls, decode_urls)
        running.start(router)
        running.wait_until_healthy(timeout_s)
        started = (*prefills, *decodes, router)
        yield RunningDeployment(router.base_url, prefill_urls, decode_urls, started, running)


@contextmanager
def serve_phase(
    phase: Phase,
    model: ServedModel,
    config: ServingConfig,
    layout: DisaggregationConfig,
    folder: Path,
) -> Iterator[RunningDeployment]:
    """One server, at the configured port, of a deployment whose router is on another host.

    That host's layout names its address. Errors as of serve_colocated.
    """
    layout = layout.model_copy(update={f"{phase}_port": config.port})
    with ExitStack() as held:
        server = _Site(config, layout, folder, held).server(phase, model)
        servers = run_servers([server], start_timeout_s=config.start_timeout_s)
        running = held.enter_context(servers)
        yield RunningDeployment(server.base_url, (), (), (server,), running)


def _urls(servers: Sequence[Server]) -> tuple[str, ...]:
    return tuple(server.base_url for server in servers)


class _Site:
    """This host: what its servers have in common, and the ports and GPUs held until they end."""

    def __init__(
        self, config: ServingConfig, layout: DisaggregationConfig, folder: Path, held: ExitStack
    ) -> None:
        self._config, self._layout, self._folder, self._held = config, layout, folder, held
        elsewhere = (urlsplit(url).hostname for url in (*layout.prefill_urls, *layout.decode_urls))
        reach_directly([config.host, *filter(None, elsewhere)])
        self._host = this_host()
        self._gpus: Mapping[str, str] | None = None

    def server(self, phase: Phase, model: ServedModel) -> Server:
        """The server of that phase, in a folder of its own where CHECKPOINT_NAME is its model."""
        verify_if_exported(model.folder)
        folder = self._folder / phase
        _link(folder / CHECKPOINT_NAME, model.folder)
        layout = self._layout
        port = self._port(layout.prefill_port if phase is Phase.PREFILL else layout.decode_port)
        command = server_command(
            CHECKPOINT_NAME,
            self._config,
            port=port,
            parent=os.getpid(),
            host=self._host,
            pools=model.pools,
            default_mode=model.default_mode,
        )
        command = with_kv_transfer(
            replace(command, folder=folder).with_environment(self._gpu_environment()),
            layout,
            phase,
            side_channel_port=self._held.enter_context(reserved_port(layout.kv_host)),
            device=self._host.device,
        )
        return Server(f"the {phase} server", command, self._url(port), folder / "server.log")

    def router(self, prefill_urls: Sequence[str], decode_urls: Sequence[str]) -> Server:
        port = self._port(self._config.port)
        command = router_command(
            prefill_urls,
            decode_urls,
            self._config,
            port=port,
            metrics_port=self._port(),
            parent=os.getpid(),
        )
        return Server("the router", command, self._url(port), self._folder / "router.log")

    def _port(self, port: int = 0) -> int:
        return self._held.enter_context(reserved_port(self._config.host, port))

    def _url(self, port: int) -> str:
        return f"http://{self._config.host}:{port}"

    def _gpu_environment(self) -> Mapping[str, str]:
        if self._gpus is None or not self._layout.shares_gpus:
            self._gpus = self._held.enter_context(_gpus(self._host, self._config))
        return self._gpus


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@contextmanager
def _gpus(host: Host, config: ServingConfig) -> Iterator[Mapping[str, str]]:
    """What gives a server its own GPUs, for as long as the block runs; nothing on CPU.

    EngineError if too few are free, or several are asked of a vLLM that was built for CPU.
    """
    if host.device is Device.CPU:
        if config.gpus > 1:
            raise EngineError(
                f"serving.gpus={config.gpus}, and the vLLM that is installed serves on CPU only. "
                "Set it to 1, or install the packages of envs/gpu.lock.txt."
            )
        yield {}
        return
    with leased_gpus(config.gpus) as gpus:
        yield {VISIBLE: ",".join(gpus)}
