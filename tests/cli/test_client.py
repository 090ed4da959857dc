"""The commands that talk to a server: what they print and what they exit with."""

from __future__ import annotations

import json
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from kernelgate.cli.exits import Exit
from kernelgate.cli.server import parse_events
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.protocol import EventKind
from kernelgate.verdicts import State, Verdict
from tests.api.conftest import HONEST, Api, Graded, result_of
from tests.cli.conftest import Cli


@pytest.fixture
def file(cli: Cli) -> Path:
    path = cli.home / "double.py"
    path.write_text(HONEST)
    return path


def waiting_submission() -> str:
    """The id of the submission that a command has just made."""
    for _ in range(600):
        with transaction() as session:
            found = session.scalars(select(Submission.id).where(Submission.state == State.QUEUED)).all()
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("nothing was submitted")


def test_submit_shows_progress_then_evidence(api: Api, signed_in: Callable[[str], Cli], file: Path) -> None:
    assert api
    process = signed_in("ada").start("submit", "double", str(file))
    made = waiting_submission()
    Graded.run(made)
    Graded.event(made, EventKind.PHASE, {"phase": "load", "state": "ended", "ms": 12.0})
    Graded.event(made, EventKind.CASE, {"index": 0, "total": 1, "name": "small", "state": "right", "ms": 1.0})
    Graded.event(made, EventKind.MEASURE, {"pairs": 30, "speedup": 2.0, "low": 1.9, "high": 2.1})
    Graded.finish(made, result_of(Verdict.ACCEPTED, speedup=(2.0, 1.9, 2.1)))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.startswith("VERDICT             accepted\n")
    assert "DOUBLE BASELINE MS  2.0000" in out
    assert [line.strip() for line in err.splitlines()] == [
        f"submission {made}",
        "queued",
        "running",
        "load  12 ms",
        "case 1/1  right  small",
        "30 pairs  2.000x (1.900 to 2.100)",
        "done",
    ]


@pytest.mark.parametrize("verdict", Verdict)
def test_each_verdict_has_its_exit_status(
    api: Api, signed_in: Callable[[str], Cli], file: Path, verdict: Verdict
) -> None:
    made = api.submit(api.as_("ada"))["id"]
    Graded.finish(made, result_of(verdict))
    assert file.exists()
    shown = signed_in("ada").run("result", made)
    assert shown.returncode == verdict.about.exit_status
    assert f"{verdict}" in shown.stdout.splitlines()[0]


def test_json_is_the_whole_submission_and_nothing_else(api: Api, signed_in: Callable[[str], Cli], file: Path) -> None:
    assert api
    process = signed_in("ada").start("submit", "--json", "double", str(file))
    Graded.finish(waiting_submission(), result_of(Verdict.WRONG_ANSWER))
    out, err = process.communicate(timeout=60)
    assert process.returncode == Verdict.WRONG_ANSWER.about.exit_status
    assert json.loads(out)["result"]["mistake"]["name"] == "tripled"
    assert err == ""


def test_no_wait_prints_the_address_and_a_key_submits_once(
    api: Api, signed_in: Callable[[str], Cli], file: Path
) -> None:
    ada = signed_in("ada")
    first, second = (ada.run("submit", "--no-wait", "--key", "k1", "double", str(file)) for _ in range(2))
    assert first.returncode == 0
    assert first.stdout == second.stdout
    assert f"{api.url}/submissions/{first.stdout.split()[0]}" in first.stdout


def test_where_streams_are_refused_it_polls(
    api: Api, limits: Callable[..., None], signed_in: Callable[[str], Cli], file: Path
) -> None:
    limits(streams_per_user=1)
    api.app.state.streams.take("ada")
    process = signed_in("ada").start("submit", "double", str(file))
    made = waiting_submission()
    time.sleep(1)
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "accepted" in out
    assert "done" in err


def test_a_cancelled_submission_has_a_status_of_its_own(api: Api, signed_in: Callable[[str], Cli], file: Path) -> None:
    assert api
    ada = signed_in("ada")
    process = ada.start("submit", "double", str(file))
    shown = ada.run("cancel", waiting_submission())
    assert shown.stdout == "cancelled\n"
    process.communicate(timeout=60)
    assert process.returncode == Exit.CANCELLED
    with transaction() as session:
        made = session.scalars(select(Submission.id)).one()
    assert ada.run("cancel", made).returncode == Exit.REFUSED


def test_ctrl_c_stops_watching_and_says_how_to_go_on(api: Api, signed_in: Callable[[str], Cli], file: Path) -> None:
    assert api
    process = signed_in("ada").start("submit", "double", str(file))
    made = waiting_submission()
    assert process.stderr is not None
    assert process.stderr.readline() == f"submission {made}\n"
    assert process.stderr.readline() == "queued\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED
    assert f"kernelgate result {made}" in err
    assert "Traceback" not in err


REFUSED = {
    "unknown stage": (("submit", "duoble", "double.py"), Exit.REFUSED, "Did you mean double?"),
    "empty": (("submit", "double", "empty.py"), Exit.REFUSED, "nothing in them"),
    "wrong name": (("submit", "double", "double.cu"), Exit.REFUSED, "accepted: a plain file name ending in .py"),
    "no file": (("submit", "double", "nothing.py"), Exit.USAGE, "does not exist"),
    "no argument": (("submit", "double"), Exit.USAGE, "Missing argument 'FILE...'"),
    "unknown option": (("submit", "--fast", "double", "double.py"), Exit.USAGE, "No such option"),
    "unknown submission": (("result", "0" * 16), Exit.REFUSED, "no submission of this id"),
    "no id": (("result", "../etc"), Exit.USAGE, "is no id or name"),
    "unknown board": (("leaderboard", "duoble"), Exit.REFUSED, "no stage of that name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_refusal_has_its_status_and_says_why(
    api: Api, signed_in: Callable[[str], Cli], file: Path, name: str
) -> None:
    assert api
    file.with_name("empty.py").write_text("")
    file.with_name("double.cu").write_text("int x;")
    words, status, said = REFUSED[name]
    shown = signed_in("ada").run(*words)
    assert shown.returncode == status
    assert said in shown.stderr
    assert shown.stdout == ""


def test_without_a_right_token_it_says_how_to_sign_in(api: Api, cli: Cli, file: Path) -> None:
    shown = cli.run("submit", "double", str(file), KERNELGATE_URL=api.url)
    assert shown.returncode == Exit.SIGN_IN
    assert "kernelgate login" in shown.stderr
    shown = cli.run("submit", "double", str(file), KERNELGATE_URL=api.url, KERNELGATE_TOKEN="kg_" + "x" * 32)
    assert shown.returncode == Exit.SIGN_IN
    assert "No token like this one" in shown.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://nowhere.invalid"])
def test_an_unreachable_server_is_said(cli: Cli, file: Path, url: str) -> None:
    shown = cli.run("submit", "double", str(file), KERNELGATE_URL=url)
    assert shown.returncode == Exit.NETWORK
    assert f"{url} cannot be reached" in shown.stderr


def test_what_is_no_kernelgate_server_is_said(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = cli.start("stages", KERNELGATE_URL=f"http://127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.NETWORK
    assert "is it a Kernelgate server?" in err


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://"])
def test_what_is_no_address_is_said(cli: Cli, url: str) -> None:
    shown = cli.run("stages", KERNELGATE_URL=url)
    assert shown.returncode == Exit.USAGE
    assert "is not the address of a server" in shown.stderr


def test_login_stores_what_works_for_the_user_alone(api: Api, cli: Cli) -> None:
    token = api.token("ada")
    shown = cli.run("login", api.url, "--token-from-stdin", input=token + "\n")
    assert shown.returncode == 0, shown.stderr
    assert "as ada (submitter)" in shown.stdout
    assert token not in shown.stdout + shown.stderr
    stored = cli.home / ".config" / "kernelgate" / "credentials.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(stored.parent.stat().st_mode) == 0o700
    assert cli.run("stages").returncode == 0
    made = api.submit(api.as_("ada"))["id"]
    assert cli.run("result", made).stdout.startswith("STATE    queued")
    assert cli.run("logout").stdout == "forgotten\n"
    assert not stored.exists()
    assert cli.run("logout").stdout == "nothing was stored\n"


def test_login_with_a_wrong_token_stores_nothing(api: Api, cli: Cli) -> None:
    shown = cli.run("login", api.url, "--token-from-stdin", input="kg_" + "x" * 32 + "\n")
    assert shown.returncode == Exit.SIGN_IN
    assert not (cli.home / ".config" / "kernelgate" / "credentials.json").exists()


def test_a_stored_token_goes_to_its_own_server_only(api: Api, cli: Cli) -> None:
    cli.run("login", api.url, "--token-from-stdin", input=api.token("ada") + "\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = cli.start("stages", KERNELGATE_URL=f"http://127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection:
            request = connection.recv(65536)
        process.communicate(timeout=60)
    assert b"stages" in request
    assert b"kg_" not in request


def test_a_damaged_credentials_file_is_said(cli: Cli) -> None:
    stored = cli.home / ".config" / "kernelgate" / "credentials.json"
    stored.parent.mkdir(parents=True)
    stored.write_text("{")
    shown = cli.run("stages")
    assert shown.returncode == Exit.FAILED
    assert "remove it and sign in again" in shown.stderr


def test_stages_and_leaderboard_are_tables(api: Api, signed_in: Callable[[str], Cli]) -> None:
    made = api.submit(api.as_("ada"))["id"]
    ada = signed_in("ada")
    assert ada.run("stages").stdout == "STAGE   FILE       STATE  TITLE\ndouble  double.py  open   Double\n"
    assert ada.run("leaderboard", "double").stdout == "nobody was accepted yet\n"
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    lines = ada.run("leaderboard", "double").stdout.splitlines()
    assert lines[0].split() == ["RANK", "USER", "ATTEMPTS", "ACCEPTED", "SUBMISSION"]
    assert lines[1].split()[:3] == ["1", "ada", "1"]
    assert ada.run("leaderboard", "double", "--csv").stdout.splitlines()[1].startswith("1,ada,")
    assert json.loads(ada.run("leaderboard", "double", "--json").stdout)["total"] == 1
    assert json.loads(ada.run("stages", "--json").stdout)[0]["name"] == "double"


def test_the_source_comes_back_as_it_was(api: Api, signed_in: Callable[[str], Cli]) -> None:
    made = api.submit(api.as_("ada"))["id"]
    assert signed_in("ada").run("result", "--source", made).stdout == HONEST


def test_events_are_parsed_as_the_standard_says() -> None:
    lines = [
        "retry: 1000",
        "",
        ": still here",
        "",
        "id: 1",
        "event: state",
        'data: {"id": 1,',
        'data: "kind": "x"}',
        "",
    ]
    assert list(parse_events(iter(lines))) == [{"id": 1, "kind": "x"}]
    with pytest.raises(ValueError, match="no object"):
        list(parse_events(iter(["data: 1", ""])))


def test_a_stage_is_pulled_and_found_by_check(api: Api, signed_in: Callable[[str], Cli]) -> None:
    cli = signed_in("puller")
    shown = cli.run("pull", "double")
    assert shown.returncode == 0, shown.stderr
    assert (cli.home / "double" / "double.py").read_text() == (
        api.graders / "double" / "starter" / "double.py"
    ).read_text()
    assert "The server keeps this stage's reference" in shown.stdout, "it has a grader.py, which is not taken apart"
    missing = cli.run("pull", "dubble")
    assert missing.returncode == Exit.REFUSED
    assert "Did you mean double?" in missing.stderr
