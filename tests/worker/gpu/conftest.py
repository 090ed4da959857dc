"""Jobs of the stage that a GPU measures, as its recordings have them."""

from tests.worker.recording.conftest import device, job, sources, stage

__all__ = ["device", "job", "sources", "stage"]
