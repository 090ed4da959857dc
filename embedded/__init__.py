"""One machine, no Docker, no root: a real Postgres and broker from wheels, and the whole service on them."""
