"""What the Kubernetes profile submits, told by an API server that runs no pod."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

pytest.importorskip("snakemake_executor_plugin_kubernetes")
pytest.importorskip("snakemake_storage_plugin_fs")
pytestmark = pytest.mark.slow


class _Server(ThreadingHTTPServer):
    """Accepts every job, keeps its specification, and says that it failed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.jobs: list[dict[str, Any]] = []


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/jobs"):
            assert isinstance(self.server, _Server)
            self.server.jobs.append(body)
        self._answer(body)

    def do_GET(self) -> None:
        if "/pods" in self.path:
            self._answer({"kind": "PodList", "items": []})
        else:
            self._answer({"kind": "Job", "status": {"failed": 1}})

    def do_DELETE(self) -> None:
        self._answer({"kind": "Status", "status": "Success"})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test's output is the engine's."""

    def _answer(self, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    """The server that kubectl's configuration names."""
    with _Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {}}],
            "contexts": [{"name": "this", "context": {"cluster": "here", "user": "me"}}],
            "current-context": "this",
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield server
        server.shutdown()


def test_a_job_asks_for_memory_gpus_and_the_claim_with_the_checkout(tree, api):
    overlay = tree.overlay(
        "backbone: {model: trained}\nresources: {gpus: 1, model_memory_mb: 7000}\n"
        "training: {device: cuda}\n"
    )
    outcome = tree.engine(
        "results/smoke/10_backbone/trained/manifest.json",
        *("--profile", "workflow/profiles/kubernetes", "--container-image", "an/image"),
        *("--default-storage-prefix", str(tree.root), "--precommand", f"cd {tree.root}"),
        overlay,
    )
    assert "failed" in outcome.stdout, outcome.stdout
    assert len(api.jobs) == 1, outcome.stdout
    (job,) = api.jobs
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    asked = container["resources"]
    assert container["image"] == "an/image"
    assert asked["limits"]["nvidia.com/gpu"] == asked["requests"]["nvidia.com/gpu"] == "1"
    assert asked["limits"]["memory"] == "7000M"
    assert {"name": "slimwise", "mountPath": "/slimwise"} in container["volumeMounts"]
    claims = [volume.get("persistentVolumeClaim") for volume in pod["volumes"]]
    assert {"claimName": "slimwise"} in claims
    assert container["args"][-1].startswith(f"cd {tree.root} && ")
    assert "train_backbone" in container["args"][-1]
