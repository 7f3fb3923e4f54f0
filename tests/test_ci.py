"""The recipe for CI: its files are read as GitHub and GitLab read them, and its shell lines run against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import docs
import pytest
import yaml

from headwater.cli.demo import recorded
from headwater.ingest import ingest
from headwater.keys import create
from headwater.store import open_store
from serving import serving

CI = Path(__file__).parents[1] / "examples" / "ci"
GITHUB: dict[Any, Any] = yaml.safe_load((CI / "github.yml").read_text())
GITLAB: dict[str, Any] = yaml.safe_load((CI / "gitlab.yml").read_text())


@dataclass
class Repository:
    """A clone with a changed model, a deleted one and one that nobody knows; and a server that knows of two."""

    folder: Path
    environment: dict[str, str]

    def run(self, line: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A line as a runner runs it: bash, ended by the first fault, of a pipe too."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line],
            cwd=self.folder, env={**self.environment, **more}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def comment(self) -> str:
        """What was written for the pull request."""
        return (self.folder / "comment.md").read_text()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("asked")
    url = f"sqlite:///{folder}/shop.db"
    store = open_store(url)
    ingest(store, list(recorded()))
    _, key = create(store, "ci", ["read"], by="test")
    store.close()
    with serving(url, environment={"HEADWATER_SERVE__AUTH": "on"}) as server:
        yield {"HEADWATER_URL": server.url, "HEADWATER_API_KEY": key}


@pytest.fixture
def repository(tmp_path: Path, asked: dict[str, str]) -> Repository:
    names = {
        "GIT_AUTHOR_NAME": "ann",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "ann",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    made = Repository(tmp_path, {**os.environ, **names, **asked, "PATH": path})
    script = (CI / "lineage.sh").read_text()
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "lineage.sh").write_text(script)
    steps = """
        git init -q -b main .
        mkdir -p models/gold
        echo 'select 1' | tee models/orders_paid.sql models/gold/revenue_by_day.sql models/brand_new.sql models/same.sql >/dev/null
        git add . && git commit -qm before && git update-ref refs/remotes/origin/main HEAD
        git checkout -q -b change
        echo 'select 2' | tee models/orders_paid.sql models/brand_new.sql README.md >/dev/null
        git rm -q models/gold/revenue_by_day.sql
        git add . && git commit -qm after
    """
    done = made.run(steps)
    assert done.returncode == 0, done.stderr
    return made


def steps(job: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in GITHUB["jobs"][job]["steps"] if "name" in each}


def test_github_reads_a_workflow() -> None:
    assert GITHUB[True].keys() == {"pull_request", "schedule"}  # YAML's own reading of `on`
    assert GITHUB["permissions"] == {"contents": "read", "pull-requests": "write"}
    for job in GITHUB["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert "run" not in step or step["shell"] == "bash"
            # what a stranger's branch is called must not become part of a script
            assert "${{" not in step.get("run", "")
    assert steps("impact")["comment"]["if"] == "always()"


def test_gitlab_reads_its_jobs() -> None:
    for job in GITLAB.values():
        assert job["image"].startswith("python:")
        assert job["rules"]
        assert all(isinstance(line, str) for part in ("before_script", "script") for line in job[part])
    assert GITLAB["lineage:impact"]["variables"]["GIT_DEPTH"] == "0"


def test_the_commands_of_the_recipe_exist() -> None:
    text = "\n".join(each.read_text() for each in CI.iterdir())
    found = re.findall(r"^\s*(?:- |run: )?(headwater [a-z].*)$", text, re.MULTILINE)
    assert len(found) == 4
    known = docs.commands()
    for line in found:
        words = line.split()
        options = {each for each in words if each.startswith("--")}
        assert options <= {*docs.options(known[" ".join(words[:2])])}, line


def test_a_pull_request_gets_its_comment_and_the_gate_trips(repository: Repository) -> None:
    """GitHub's lines: more than ten hang on none of them; more than none do on one."""
    line = steps("impact")["impact"]["run"]
    done = repository.run(line, BASE="main")
    assert done.returncode == 0, done.stderr
    assert "what depends on `dataset:s3://lake:silver/orders_paid`" in repository.comment
    assert "`s3://lake/gold/revenue_by_day`" in repository.comment
    assert "No dataset is known as `brand_new` yet." in repository.comment
    assert "same" not in repository.comment
    assert "what depends on `dataset:s3://lake:gold/revenue_by_day`" in repository.comment, (
        "a deleted one counts"
    )

    strict = line.replace(" 10 ", " 0 ")
    assert strict != line
    done = repository.run(strict, BASE="main")
    assert done.returncode == 6
    assert "**The gate tripped:**" in repository.comment
    assert "more than 0" in done.stderr

    (repository.folder / "bin").mkdir()
    spy = repository.folder / "bin" / "gh"
    spy.write_text('#!/bin/sh\necho "$@" > told\ncat "$7" > body\n')
    spy.chmod(0o755)
    path = f"{spy.parent}{os.pathsep}{repository.environment['PATH']}"
    done = repository.run(steps("impact")["comment"]["run"], PULL_REQUEST="7", PATH=path)
    assert done.returncode == 0, done.stderr
    assert (repository.folder / "told").read_text().startswith("pr comment 7 ")
    assert (repository.folder / "body").read_text() == repository.comment


def test_a_server_that_is_down_fails_the_job_and_not_the_gate(repository: Repository) -> None:
    done = repository.run(steps("impact")["impact"]["run"], BASE="main", HEADWATER_URL="http://127.0.0.1:9")
    assert done.returncode == 4
    done = repository.run(steps("impact")["impact"]["run"], BASE="main", HEADWATER_API_KEY="wrong")
    assert done.returncode == 4
    assert "wrong" not in done.stderr


def test_what_cannot_be_compared_fails_the_job(repository: Repository) -> None:
    """A base that was not fetched, say: no change was seen, which is not to say that there is none."""
    done = repository.run("bash ci/lineage.sh origin/nowhere 10 comment.md")
    assert done.returncode not in (0, 6)
    assert "nowhere" in done.stderr
    assert not (repository.folder / "comment.md").exists()


def test_a_branch_without_models_says_so(repository: Repository) -> None:
    done = repository.run(steps("impact")["impact"]["run"].replace("origin/$BASE", "HEAD"))
    assert (done.returncode, repository.comment) == (0, "No model is changed.\n")


class Notes(BaseHTTPRequestHandler):
    """GitLab's notes of a merge request, as far as the recipe asks for them."""

    told: list[tuple[str, str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Notes.told.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)["body"][0]))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_a_merge_request_gets_its_note(repository: Repository) -> None:
    job = GITLAB["lineage:impact"]
    done = repository.run("\n".join(job["script"]), CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main")
    assert done.returncode == 0, done.stderr
    Notes.told = []
    with HTTPServer(("127.0.0.1", 0), Notes) as gitlab:
        thread = threading.Thread(target=gitlab.handle_request)
        thread.start()
        done = repository.run(
            "\n".join(job["after_script"]),
            CI_API_V4_URL=f"http://127.0.0.1:{gitlab.server_port}/api/v4",
            CI_PROJECT_ID="3", CI_MERGE_REQUEST_IID="9", LINEAGE_BOT_TOKEN="bot",
        )  # fmt: skip
        thread.join(10)
    assert done.returncode == 0, done.stderr
    assert Notes.told == [("/api/v4/projects/3/merge_requests/9/notes", "bot", repository.comment)]


@pytest.mark.parametrize("line", [steps("nightly")["diff"]["run"], *GITLAB["lineage:nightly"]["script"]])
def test_the_nightly_lines_tell_what_changed(repository: Repository, line: str) -> None:
    summary = repository.folder / "summary.md"
    done = repository.run(line, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr  # the recorded day is long ago
    assert "Nothing differs." in done.stdout
    whole = line.replace("-24h", "2020-01-01").replace("removed", "added")
    assert whole != line
    done = repository.run(whole, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 6, "though its output goes through a pipe"
    assert "**The gate tripped:**" in done.stdout
