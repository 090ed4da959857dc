"""`kernelgate admin` and what people say to each other, against a real API."""

from __future__ import annotations

import json
from collections.abc import Callable

from kernelgate.models import Role, now
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, result_of
from tests.cli.conftest import Cli


def done(cli: Cli, *words: str) -> str:
    found = cli.run(*words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_an_administrator_s_commands(api: Api, signed_in: Callable[[str], Cli]) -> None:
    (api.graders / "broken").mkdir()
    (api.graders / "broken" / "stage.py").write_text("title = (\n")
    (api.graders / "broken" / "lesson.md").write_text("# Broken\n")
    api.app.state.catalog.reload()
    api.token("root", Role.ADMIN)
    root = signed_in("root")
    made = str(api.submit(api.as_("ada"))["id"])
    Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    listed = done(root, "admin", "stages")
    assert "broken" in listed
    assert "double" in listed
    assert made in done(root, "admin", "submissions", "--mistake", "tripled", "--user", "ADA")
    assert done(root, "admin", "submissions", "--apart", "hidden") == "nothing matches\n"
    assert done(root, "admin", "hide", made) == f"{made}  hidden\n"
    assert "hidden" in done(root, "admin", "submissions", "--apart", "hidden")
    assert done(root, "admin", "rejudge", made) == f"{made}  round 2\n"
    assert (
        done(root, "admin", "rejudge-stage", "double", "--verdict", "accepted")
        == "0 submissions would be judged again\n"
    )
    assert "closed by root" in done(root, "admin", "stage", "double", "--close")
    assert "board frozen" in done(root, "admin", "stage", "double", "--open", "--freeze")
    log = done(root, "admin", "audit")
    assert [word in log for word in ("submission.hide", "submission.rejudge", "stage.freeze")] == [True] * 3
    secret = done(root, "admin", "webhooks", "--add", "https://hooks.invalid/x", "--event", "record")
    assert secret.startswith("whsec_")
    number = done(root, "admin", "webhooks").split()[0]
    assert done(root, "admin", "webhooks", "--remove", number) == ""
    refused = signed_in("ada").run("admin", "audit")
    assert refused.returncode != 0
    assert "scope admin" in refused.stderr


def test_talking_and_a_contest_from_the_command_line(api: Api, signed_in: Callable[[str], Cli]) -> None:
    api.token("greta", Role.INSTRUCTOR)
    greta, ada = signed_in("greta"), signed_in("ada")
    done(greta, "course", "new", "gpu", "--title", "GPU")
    done(greta, "course", "stage", "gpu", "double", "--points", "5")
    link = done(greta, "course", "invite", "gpu").strip()
    assert api.as_("ada").post(f"/join/{link.rsplit('/', 1)[1]}").is_success
    made = str(api.submit(api.as_("ada"))["id"])
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    done(greta, "comment", made, "Why?", "--line", "1")
    assert "line 1  greta: Why?" in done(ada, "comments", made)
    number = done(ada, "course", "ask", "gpu", "Sorted?", "--stage", "double").split()[1]
    assert done(greta, "course", "answer", "gpu", number, "No.", "--all") == "answered all\n"
    assert "greta: No." in done(ada, "course", "questions", "gpu")
    assert "/feeds/" in done(ada, "course", "feed", "gpu")
    year = now().year
    times = ("--starts", f"{year - 1}-01-01T00:00", "--ends", f"{year + 1}-12-31T00:00")
    assert "running" in done(greta, "course", "contest-times", "gpu", *times, "--public")
    assert done(ada, "course", "contest", "gpu").splitlines()[1].split()[:3] == ["1", "ada", "5"]
    assert done(ada, "course", "contest", "gpu", "--csv").startswith("rank,name,points,minutes")
    assert json.loads(done(greta, "course", "contest", "gpu", "--whole", "--json"))["state"] == "running"
    assert "nothing is revealed before" in greta.run("course", "reveal", "gpu").stderr
    assert "one start for all" in ada.run("course", "start", "gpu").stderr
    assert done(greta, "course", "contest-times", "gpu", "--remove") == "gpu is no contest\n"
    secret = done(greta, "course", "webhook", "gpu", "https://hooks.invalid/x")
    assert secret.startswith("whsec_")
    assert "https://hooks.invalid/x" in done(greta, "course", "webhooks", "gpu")
