"""The whole service on one machine: database, broker, API and worker, proven by a graded sample, until told to stop.

Whatever the environment states about the database or the broker is respected: a stated one is used and none is started.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from sqlalchemy import select

from embedded import schema
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.errors import EmbeddedError
from embedded.ports import choose_port
from embedded.postgres import Postgres
from embedded.process import Child, dying_with_parent
from embedded.sample import choose_sample, grade_sample
from embedded.supervisor import LOOK_S, STOP_SIGNALS, Stop, Supervisor, stoppable, undisturbed
from kernelgate import db
from kernelgate.accounts import create_token, create_user, find_user
from kernelgate.models import Role, User
from kernelgate.settings import ROOT, Settings, environment, settings
from kernelgate.stage_folders import load_stages

ALIVE_S = 60.0
READY_S = 300.0
TELL_AFTER_S = 5.0
WORKER_GRACE_S = 35.0
ADMIN = "admin"
Say = Callable[[str], None]


def up(stated: Settings, say: Say) -> None:
    """Runs until a signal. Raises EmbeddedError when a service cannot start or keeps dying; everything is stopped then."""
    started = time.monotonic()
    data = DataDir(stated.data_dir)
    data.acquire()
    supervisor = Supervisor(say)
    with stoppable():
        try:
            values = _start_all(stated, data, supervisor, say)
            _introduce(values, say)
            if _wait_until_ready(values, supervisor, say):
                say(f"ready after {time.monotonic() - started:.1f} s")
                _prove(values, say)
            say("Ctrl-C stops it.")
            supervisor.watch()
        except Stop:
            say("stopping")
        finally:
            undisturbed()
            (data.root / "service.env").unlink(missing_ok=True)
            supervisor.stop_all()
            data.release()
    say("stopped; the data is kept in " + str(data.root))


def _start_all(stated: Settings, data: DataDir, supervisor: Supervisor, say: Say) -> Settings:
    values = _services(stated, data, supervisor, say)
    values = values.model_copy(update={"port": _port(stated, say)})
    _publish(values, data)
    schema.upgrade(values.database_url)
    for child in _children(values, data):
        supervisor.start(child)
    _wait_until_alive(values, supervisor)
    return values


def _services(stated: Settings, data: DataDir, supervisor: Supervisor, say: Say) -> Settings:
    """Starts what the environment does not name, and returns the settings that lead there."""
    found: dict[str, object] = {"data_dir": data.root}
    if "database_url" not in stated.model_fields_set:
        postgres = Postgres(data)
        supervisor.start(postgres)
        found["database_url"] = postgres.url()
        say(f"postgres is up (data in {data.root / 'postgres'})")
    if "broker_url" not in stated.model_fields_set:
        broker = Broker(data)
        supervisor.start(broker)
        found["broker_url"] = broker.url
        say("broker is up")
    if "open_signup" not in stated.model_fields_set:
        found["open_signup"] = True
    return stated.model_copy(update=found)


def _port(stated: Settings, say: Say) -> int:
    port = choose_port(stated.host, stated.port, insist="port" in stated.model_fields_set)
    if stated.port not in (0, port):
        say(f"port {stated.port} is taken; using {port} (KERNELGATE_PORT chooses another)")
    return port


def _publish(values: Settings, data: DataDir) -> None:
    """Lets `kernelgate token create` and the like, typed in another terminal, find this service's database.

    Also makes the settings of this very process those of the service.
    """
    words = environment(values)
    os.environ.update(words)
    settings.cache_clear()
    db.reset()
    path = data.root / "service.env"
    path.touch(mode=0o600)
    lines = (f"{name}='{words[name]}'" for name in sorted(words) if name.startswith("KERNELGATE_") and words[name])
    path.write_text("\n".join(lines) + "\n")


def _children(values: Settings, data: DataDir) -> list[Child]:
    env = environment(values)
    graces = {"serve": 10.0, "worker": WORKER_GRACE_S}
    prefix = dying_with_parent(STOP_SIGNALS[1])
    return [
        Child(
            name,
            [*prefix, sys.executable, "-m", "kernelgate", name],
            log=data.log(name),
            env=env,
            cwd=ROOT,
            grace_s=grace,
        )
        for name, grace in graces.items()
    ]


def _url(values: Settings) -> str:
    """Where this machine reaches the API: an address that means "all of them" is not one to connect to."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(values.host, values.host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{values.port}" if ":" in host else f"http://{host}:{values.port}"


def _wait_until_alive(values: Settings, supervisor: Supervisor) -> None:
    deadline = time.monotonic() + ALIVE_S
    while not _answers(values):
        supervisor.revive()
        if time.monotonic() > deadline:
            tails = "\n".join(f"--- {service.name}\n{service.tail()}" for service in supervisor.services)
            raise EmbeddedError(f"the API did not answer within {ALIVE_S:.0f} s\n{tails}")
        time.sleep(LOOK_S)


def _answers(values: Settings) -> bool:
    try:
        return httpx.get(f"{_url(values)}/livez", timeout=5).is_success
    except httpx.TransportError:
        return False


def _wait_until_ready(values: Settings, supervisor: Supervisor, say: Say) -> bool:
    """Whether the service takes submissions: stages of one's own are proven before they open.

    Not getting there is no reason to stop: the pages that help to find out why are up.
    """
    started = time.monotonic()
    told = answer = ""
    while time.monotonic() - started < READY_S:
        supervisor.revive()
        answer = _not_ready(values)
        if not answer:
            return True
        if answer != told and time.monotonic() - started > TELL_AFTER_S:
            if not told:
                say(
                    f"A new version of a stage is proven before it opens, once; {values.data_dir / 'logs/worker.log'} shows it."
                )
            told = answer
            say(f"not ready yet: {answer}")
        time.sleep(LOOK_S)
    say(f"still not ready after {READY_S:.0f} s, so no sample was graded: {answer}\nSee {values.data_dir / 'logs'}.")
    return False


def _not_ready(values: Settings) -> str:
    """What is in the way, in the service's own words; empty when nothing is."""
    try:
        response = httpx.get(f"{_url(values)}/readyz", timeout=5)
    except httpx.TransportError as error:
        return str(error)
    if response.is_success:
        return ""
    try:
        return "; ".join(response.json()["problems"])
    except (ValueError, KeyError, TypeError):
        return f"{response.status_code} {response.text[:500]}"


def _introduce(values: Settings, say: Say) -> None:
    say(f"\nKernelgate is at  {values.public_url or _url(values)}")
    secret = _first_admin(values)
    command = _shown(Path(sys.executable).with_name("kernelgate"))
    if secret:
        say(f"admin token (shown once; sign in with it):  {secret}")
    else:
        say(f"the admin token was shown at the first start; for another: {command} token create {ADMIN}")
    say(f"logs: {values.data_dir / 'logs'}")


def _shown(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _first_admin(values: Settings) -> str | None:
    """A token for a new admin account when there is no admin yet."""
    with db.transaction() as session:
        if session.scalars(select(User.id).where(User.role == Role.ADMIN).limit(1)).first() is not None:
            return None
        taken = find_user(session, ADMIN)
        if taken is not None:
            raise EmbeddedError(
                f"no account has the role admin, and {ADMIN!r} is a {taken.role}; see `kernelgate user --help`"
            )
        user = create_user(session, ADMIN, Role.ADMIN)
        _, secret = create_token(session, user, name="first start", days=values.account_days)
        return secret


def _prove(values: Settings, say: Say) -> None:
    stages, broken = load_stages(values.graders_dir)
    for name, why in broken.items():
        say(f"stage {name} is left out: {why}")
    sample = choose_sample(stages)
    if sample is None:
        say("no stage that this machine can grade, so no sample was graded")
        return
    try:
        proof = grade_sample(_url(values), sample)
    except (EmbeddedError, httpx.HTTPError) as error:
        say(f"the sample could not be graded: {error}\nSee {values.data_dir / 'logs'} and `kernelgate doctor`.")
        return
    say(f"sample: the solution of {proof.stage} got {proof.verdict.value!r} in {proof.seconds:.2f} s")
    if not proof.good:
        say(f"that is not what it should get; see `kernelgate doctor`.\n{proof.evidence}")
