"""Every setting of the service. Each is read from the environment as `KERNELGATE_` plus its name in capitals.

The descriptions are the documentation: `docs/settings.md` is written from them and a test fails when it lags behind.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent


def _networks(value: str) -> str:
    """Refuses what names no address: a proxy that is not recognised is believed nothing, and nobody would notice why; and what
    names all."""
    for each in filter(None, (part.strip() for part in value.split(","))):
        try:
            network = ipaddress.ip_network(each)
        except ValueError as error:
            raise ValueError(
                f"{each!r} is no address or network ({error}); accepted: 127.0.0.1, 10.0.0.0/24, ::1"
            ) from error
        if network.prefixlen == 0:
            raise ValueError(f"{each!r} is everybody; accepted: the addresses meant alone")
    return value


def _issuer(value: str) -> str:
    """Refuses an issuer whose answers anybody on the way could write."""
    parts = urlsplit(value)
    local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if value and not (parts.hostname and (parts.scheme == "https" or local) and not parts.query and not parts.fragment):
        raise ValueError(f"{value[:200]!r} is no issuer; accepted: https://… without ? and #, or http:// on localhost")
    return value


class Settings(BaseSettings):
    """Settings of one process; see each field's description."""

    model_config = SettingsConfigDict(env_prefix="KERNELGATE_", extra="ignore", frozen=True)

    database_url: Annotated[
        str, Field(description="Postgres, as SQLAlchemy spells it: `postgresql+psycopg://user:password@host/name`.")
    ] = "postgresql+psycopg://kernelgate@localhost/kernelgate"
    broker_url: Annotated[
        str,
        Field(
            description="The Redis-protocol broker that rings workers: `redis://host:6379/0` or `redis+socket:///path`."
        ),
    ] = "redis://localhost:6379/0"
    data_dir: Annotated[
        Path, Field(description="Where the embedded Postgres, broker and logs live, and where workers cache builds.")
    ] = ROOT / "var"
    graders_dir: Annotated[Path, Field(description="The folder whose sub-folders are the stages.")] = ROOT / "graders"
    host: Annotated[str, Field(description="Address the API listens on.")] = "127.0.0.1"
    port: Annotated[int, Field(description="Port the API listens on; 0 takes a free one.", ge=0, le=65535)] = 8000
    public_url: Annotated[
        str,
        Field(description="The address people type, used in links and `curl` lines; empty: taken from the request."),
    ] = ""
    proxies: Annotated[
        str,
        AfterValidator(_networks),
        Field(
            description="Addresses or networks of the proxies before the API, comma-separated: `127.0.0.1`, `10.0.0.0/24`. "
            "Their X-Forwarded-For and X-Forwarded-Proto are believed, nobody else's; empty: nobody's."
        ),
    ] = ""
    cookie_secure: Annotated[
        bool,
        Field(
            description="Send the session cookie over https only. Turn it on wherever the service is not on localhost."
        ),
    ] = False
    open_signup: Annotated[
        bool, Field(description="Whether anyone may make an account. On for `make up`, off everywhere else.")
    ] = False
    passwords: Annotated[
        bool,
        Field(
            description="Whether people may sign in with a password that they choose. Off where everybody has an identity of "
            "KERNELGATE_OIDC_ISSUER; tokens work either way."
        ),
    ] = True
    oidc_issuer: Annotated[
        str,
        AfterValidator(_issuer),
        Field(
            description="The OpenID Connect provider that people may sign in with: its issuer, as in its "
            "`/.well-known/openid-configuration`. `https://github.com` is GitHub. Empty: none."
        ),
    ] = ""
    oidc_client_id: Annotated[str, Field(description="What the provider calls this service.")] = ""
    oidc_client_secret: Annotated[
        SecretStr, Field(description="The secret that the provider gave for it; empty for a public client.")
    ] = SecretStr("")
    oidc_name: Annotated[
        str, Field(description="What the button to sign in says after “Sign in with”.", max_length=60)
    ] = "your organisation"
    oidc_accounts: Annotated[
        bool,
        Field(
            description="Whether everybody whom the provider knows may make an account. Off: only who was invited, is linked, "
            "or has a verified e-mail address that an administrator wrote down."
        ),
    ] = False
    session_days: Annotated[int, Field(description="Days after which a browser has to sign in again.", ge=1)] = 14
    token_days: Annotated[
        int, Field(description="Days a new API token lives when nothing else is asked for.", ge=1)
    ] = 180
    account_days: Annotated[
        int,
        Field(
            description="Days the first token of a new account lives. What is made from a token ends with it, so this is how "
            "long an account does without an administrator.",
            ge=1,
            le=3650,
        ),
    ] = 730
    token_limit: Annotated[
        int, Field(description="Tokens of one account that work at once; the next one gets 409.", ge=1)
    ] = 50
    token_hourly_limit: Annotated[
        int, Field(description="Tokens made for one account in any 60 minutes; the next one gets 429.", ge=1)
    ] = 20
    sign_up_limit: Annotated[
        int,
        Field(
            description="Accounts made by signing up from one address in any 60 minutes; the next one gets 429.", ge=1
        ),
    ] = 60
    pending_limit: Annotated[
        int, Field(description="Submissions one user may have queued or running at once; the next one gets 429.", ge=1)
    ] = 5
    hourly_limit: Annotated[
        int, Field(description="Submissions one user may make in any 60 minutes; the next one gets 429.", ge=1)
    ] = 120
    run_pending_limit: Annotated[
        int,
        Field(description="Runs of one case that a user may have queued or running at once; the next gets 429.", ge=1),
    ] = 2
    run_hourly_limit: Annotated[
        int, Field(description="Runs of one case that a user may make in any 60 minutes; the next one gets 429.", ge=1)
    ] = 360
    source_limit: Annotated[
        int, Field(description="Bytes a submitted source may have unless its stage asks for less; more gets 413.", ge=1)
    ] = 256 * 1024
    wait_limit_s: Annotated[
        float, Field(description="The longest `wait=` a submit request is held open for, in seconds.", ge=0)
    ] = 120.0
    sign_in_limit: Annotated[
        int, Field(description="Failed sign-ins from one address in 15 minutes before the next gets 429.", ge=1)
    ] = 20
    streams_per_user: Annotated[
        int, Field(description="Live event streams one user (or one address, signed out) may hold open at once.", ge=1)
    ] = 12
    webhook_networks: Annotated[
        str,
        AfterValidator(_networks),
        Field(
            description="Private addresses or networks that webhooks may lead to besides public ones, comma-separated: "
            "`10.1.2.0/24`. With one, `http://` is allowed too; empty: none."
        ),
    ] = ""
    ring_timeout_s: Annotated[
        float,
        Field(
            description="Seconds the API gives the broker to take a message before it leaves the job to the sweeper.",
            gt=0,
        ),
    ] = 1.0
    worker_queues: Annotated[
        str,
        Field(
            description="Queues this worker listens on, comma-separated; empty: `cpu`, and `gpu-<model>` with a GPU."
        ),
    ] = ""
    worker_slots: Annotated[
        int,
        Field(
            description="Submissions that this worker grades at once; 0: one with a GPU, else one for each core, at most 4. "
            "Each has a spare user id of its own, from KERNELGATE_SANDBOX_UID on.",
            ge=0,
            le=64,
        ),
    ] = 0
    lease_s: Annotated[
        float,
        Field(description="Seconds a worker holds a submission without a heartbeat before another may take it.", gt=0),
    ] = 30.0
    heartbeat_s: Annotated[float, Field(description="Seconds between two heartbeats of a worker.", gt=0)] = 10.0
    watch_s: Annotated[
        float,
        Field(description="Seconds between two looks of a busy worker at whether its submission was cancelled.", gt=0),
    ] = 0.5
    sweep_s: Annotated[
        float, Field(description="Seconds between two sweeps for expired leases and unrung submissions.", gt=0)
    ] = 15.0
    ring_again_s: Annotated[
        float,
        Field(description="Seconds a queued submission waits unclaimed before the sweeper rings for it again.", gt=0),
    ] = 10.0
    attempts: Annotated[
        int, Field(description="How often a submission is tried before it ends as `judge_error`.", ge=1)
    ] = 3
    runner_python: Annotated[
        Path, Field(description="The interpreter inside the sandbox; it needs the packages of requirements/grade.txt.")
    ] = Path(sys.executable)
    sandbox_uid: Annotated[
        int, Field(description="The spare user id sandboxed processes get when the worker runs as root.", ge=1)
    ] = 64123
    sandbox_minimum: Annotated[
        Literal["full", "reduced", "none"],
        Field(
            description="The weakest sandbox this worker grades in: `full` (namespaces, seccomp, limits), `reduced` "
            "(Landlock, seccomp without sockets, limits), `none` (only for code you trust)."
        ),
    ] = "reduced"
    emulator: Annotated[
        bool,
        Field(
            description="Whether CUDA stages are graded on the CPU where there is no GPU but a C++ compiler: values only, "
            "speed is not judged; see docs/emulator.md."
        ),
    ] = True
    emulator_compiler: Annotated[
        str,
        Field(
            description="The C++ compiler of the emulator, a name or a path: g++ 12 or clang++ 14, or newer; empty: g++, else "
            "clang++. `kernelgate doctor` says which is used."
        ),
    ] = ""
    build_cache: Annotated[
        str,
        Field(
            description="Where workers keep what compilers made, of our own programs and of submissions, by content; empty: "
            "`builds` in the data folder."
        ),
    ] = ""
    check_pass: Annotated[
        bool,
        Field(
            description="Whether a GPU worker runs short cases of a CUDA submission in the emulator's check build beside the "
            "grading, to find races that the card happened to survive; see docs/emulator.md."
        ),
    ] = True
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="How much the processes log.")
    ] = "info"

    @property
    def web_dir(self) -> Path:
        return ROOT / "web"

    @property
    def sandboxed_dir(self) -> Path:
        """Programs that run beside a submission."""
        return ROOT / "sandboxed"

    @property
    def kernels_dir(self) -> Path:
        return ROOT / "kernels"


@cache
def settings() -> Settings:
    """The process's settings, read once. Raises pydantic.ValidationError naming the field, the value and what is accepted.

    While `kernelgate up` runs, its `data_dir` holds `service.env` with what it chose (the sockets, the port), so that
    commands typed in another terminal reach the same service. The environment goes before that file.
    """
    stated = Settings()
    chosen = stated.data_dir / "service.env"
    return Settings(_env_file=chosen) if chosen.is_file() else stated


def environment(values: Settings) -> dict[str, str]:
    """The settings as environment variables, for a process this one starts; the rest of the environment is kept."""
    stated = {f"KERNELGATE_{name.upper()}": _stated(getattr(values, name)) for name in Settings.model_fields}
    return {**os.environ, **stated}


def _stated(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
