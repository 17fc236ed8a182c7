"""The files in `deploy/` name only what exists: commands, options, probes, metrics, extras."""

import json
import re
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from longhold.cli import cli

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes/longhold.yaml").read_text()))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def containers():
    deployments = [one for one in MANIFESTS if one["kind"] == "Deployment"]
    return [c for one in deployments for c in one["spec"]["template"]["spec"]["containers"]]


def command_lines():
    yield json.loads(re.search(r"^CMD (.*)$", DOCKERFILE, re.M)[1])
    yield COMPOSE["services"]["worker"]["command"]
    yield from (container["args"] for container in containers())


@pytest.mark.parametrize("words", list(command_lines()), ids=" ".join)
def test_every_command_line_is_understood(words):
    name, *given = words
    context = click.Context(cli)
    command = cli.get_command(context, name)
    parsed = command.make_context(name, list(given), parent=context)
    assert not parsed.args


def test_the_probes_are_served(gateway_routes):
    probes = {
        container[kind]["httpGet"]["path"]
        for container in containers()
        for kind in ("livenessProbe", "readinessProbe")
        if kind in container
    }
    assert probes == {"/longhold/health", "/longhold/ready"}
    assert probes <= gateway_routes
    texts = [(DEPLOY / name).read_text() for name in ("haproxy.cfg", "compose.yaml")]
    assert all("/longhold/ready" in text for text in texts)
    assert (
        yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]["metrics_path"]
        in gateway_routes
    )


@pytest.fixture
def gateway_routes():
    server = pytest.importorskip("longhold.gateway.server")
    text = Path(server.__file__).read_text()
    return set(re.findall(r'Route\("([^"]+)"', text))


def test_the_dashboard_asks_for_metrics_that_exist():
    planner = pytest.importorskip("longhold.gateway.planner")
    from longhold.gateway.shadow import SessionBill

    lines = planner._metric_lines(planner.GatewayCounts(), SessionBill(), 0)
    known = {line.split("{")[0].split()[0] for line in lines if line[0] != "#"}
    board = json.loads((DEPLOY / "grafana/longhold.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"longhold_gateway_\w+", target["expr"])
    }
    assert asked
    assert asked <= known


def test_the_image_installs_extras_that_exist_and_has_this_version():
    extras = re.search(r"'\.\[([\w,]+)\]'", DOCKERFILE)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert {c["image"] for c in containers()} == {f"longhold:{PROJECT['version']}"}


def test_secrets_are_named_and_empty():
    lines = (DEPLOY / "secrets.env.example").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
    assert {"LONGHOLD_TOKEN", "LONGHOLD_KEY", "LONGHOLD_SALT"} <= set(given)
    assert not any(value for name, value in given.items() if "PASSWORD" in name or name[0] == "L")
    assert "secrets.env" in (ROOT / ".gitignore").read_text()


def test_the_balancer_relays_each_event_at_once():
    text = (DEPLOY / "haproxy.cfg").read_text()
    assert "option http-no-delay" in text  # without it events waited up to 200 ms for the next one
