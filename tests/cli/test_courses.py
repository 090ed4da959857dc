"""`kernelgate course` against a real API: a course from its first command to judging again."""

from __future__ import annotations

import json
from collections.abc import Callable

from kernelgate.cli.exits import Exit
from kernelgate.models import Role
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, result_of
from tests.cli.conftest import Cli


def test_a_course_from_the_command_line(api: Api, signed_in: Callable[[str], Cli]) -> None:
    api.token("greta", Role.INSTRUCTOR)
    greta = signed_in("greta")

    def done(*words: str, **given: str) -> str:
        found = greta.run("course", *words, **given)
        assert found.returncode == 0, found.stderr
        return found.stdout

    assert done("list") == "you are in no course\n"
    done("new", "gpu", "--title", "GPU programming", "--late-days", "2")
    assert "gpu" in done("list")
    done("stage", "gpu", "double", "--due", "2027-02-14T22:00", "--rule", "thresholds", "--steps", "0: 4, 1.8: 10")
    assert "due 2027-02-14T22:00:00Z  5 points (thresholds)" in done("stage", "gpu", "double", "--points", "5")
    link = done("invite", "gpu", "--uses", "3").strip()
    ada = api.as_("ada")
    assert ada.post(f"/join/{link.rsplit('/', 1)[1]}").is_success
    invited = done("add", "gpu", "-", input="bob@uni.example, Bob, red\n")
    assert invited.startswith("bob@uni.example,Bob,red,http")
    done("seat", "gpu", "ada", "--team", "red")
    rows = json.loads(done("people", "gpu", "--json"))
    assert [(row["handle"], row["team"]) for row in rows] == [("greta", None), ("ada", "red")]
    done("extend", "gpu", "double", "ada", "2027-02-16T22:00", "--reason", "ill")
    done("announce", "gpu", "Due on Friday.")
    assert "Due on Friday." in done("show", "gpu")
    made = api.submit(ada)["id"]
    Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    assert "1 submissions would be" in done("rejudge", "gpu", "double")
    assert ada.get(f"/submissions/{made}").json()["round"] == 1
    done("rejudge", "gpu", "double", "--yes")
    assert ada.get(f"/submissions/{made}").json()["round"] == 2
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    assert done("grid", "gpu").splitlines()[1].split()[:2] == ["ada", "4"]
    assert "nothing would change" in done("changes", "gpu", "--take", "double")
    assert done("hide", "gpu", made) == f"{made}  hidden\n"
    assert done("grid", "gpu").splitlines()[1].split()[:2] == ["ada", "0"]
    assert done("hide", "gpu", made, "--show") == f"{made}  shown\n"
    assert done("give", "gpu", "ada", "double", "3.5", "--reason", "shown") == "ada  double  3.5 points\n"
    assert done("points", "gpu", "--csv").splitlines()[1].startswith("ada,")
    assert made in done("timeline", "gpu", "ada", "double")
    assert done("grid", "gpu", "--stuck") == ""
    assert f"{made}, counts" not in done("log", "gpu", "ada"), "points by hand count for no submission"
    done("gradescope", "gpu", "all.zip")
    assert (greta.home / "all.zip").read_bytes().startswith(b"PK")
    assert done("similar", "gpu", "double") == "no two are alike\n"
    assert "frozen since" in done("freeze", "gpu", "double")
    assert done("freeze", "gpu", "double", "--thaw") == "thawed\n"
    done("seat", "gpu", "ada", "--remove")
    done("stage", "gpu", "double", "--remove")


def test_refusals_and_mistypings_say_what_they_are(api: Api, signed_in: Callable[[str], Cli]) -> None:
    assert api
    ada = signed_in("ada")
    assert ada.run("course", "new", "gpu", "--title", "GPU").returncode == Exit.SIGN_IN
    assert ada.run("course", "show", "gpu").returncode == Exit.REFUSED
    assert ada.run("course", "show", "../admin").returncode == Exit.USAGE
    assert "is no time" in ada.run("course", "extend", "gpu", "double", "ada", "soon").stderr
