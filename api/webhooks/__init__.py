"""Webhooks: who has them, where they may lead, and the thread that sends what the outbox holds."""
