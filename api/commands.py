"""`kernelgate serve`."""

from __future__ import annotations

import logging
from types import FrameType

import click

_GRACE_S = 5


@click.command()
@click.option("--host", default=None, help="Address to listen on. Default: the setting KERNELGATE_HOST.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port. Default: the setting KERNELGATE_PORT.")
def serve(host: str | None, port: int | None) -> None:
    """Run the API and the pages, until Ctrl-C.

    One process; for more, start it several times behind a proxy, also on other machines: all state is in Postgres. Name the
    proxy in the setting KERNELGATE_PROXIES, so that limits by address see the visitor's.
    """
    # Imported here: `kernelgate --help` is not to wait for a web framework.
    import uvicorn

    from api.app import create_app
    from kernelgate.settings import settings

    class Server(uvicorn.Server):
        """Ends event streams when told to stop; they would hold the server up until their submissions finish."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.hub.end_streams()
            super().handle_exit(sig, frame)

    level = settings().log_level
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = create_app()
    config = uvicorn.Config(
        app,
        host=host or settings().host,
        port=settings().port if port is None else port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the server would believe whoever connects from its own machine; see KERNELGATE_PROXIES
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    Server(config).run()


commands: list[click.Command] = [serve]
