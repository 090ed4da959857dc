"""Who holds a submission, in Postgres: claimed, renewed, swept, with events. Imports nothing else of worker."""
