"""What the routes of webhooks answer with, and what they read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from api.schemas import Body, Word
from kernelgate.outbox import Happening

Asked = Literal[Happening.FIRST_ACCEPTED, Happening.RECORD, Happening.JUDGE_ERROR]


def _several(value: object) -> object:
    """Of a form: `record, judge_error`."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class WebhookBody(Body):
    url: Annotated[str, Field(max_length=500)] = Field(description="Where events are sent: https, a public address.")
    events: Annotated[list[Asked], BeforeValidator(_several)] = Field(
        min_length=1,
        max_length=3,
        description="`first_accepted`: the first accepted submission to a stage; `record`: one faster than all before it on "
        "its GPU model, by more than its interval; `judge_error`: a failure of the service.",
    )


class DeliveryView(BaseModel):
    id: str
    event: Happening
    created_at: datetime
    tries: int
    delivered_at: datetime | None = None
    next_at: datetime | None = Field(None, description="When it is tried next; null: it arrived or was given up.")
    answer: Word = Field("", description="What came of the last try.")


class WebhookView(BaseModel):
    id: int
    url: str
    events: list[Happening]
    created_by: str
    created_at: datetime
    off_at: datetime | None = Field(
        None, description="Since when it is off, for it failed too often. A test turns it on."
    )
    deliveries: list[DeliveryView] = Field(description="The last ten, the newest first.")


class NewWebhook(WebhookView):
    secret: str = Field(description="What deliveries are signed with. It is shown this once.")
