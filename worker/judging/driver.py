"""The text that calls a Python submission in the sandbox: a stage's driver.py, or the one that its seam is enough for."""

from __future__ import annotations

import json

from kernelgate.seams import Argument, SeamLine
from kernelgate.settings import ROOT
from kernelgate.stages import Stage

_SHARED = ROOT / "sandboxed" / "session" / "seam_driver.py"


def driver(stage: Stage) -> str:
    """Its driver.py, or sandboxed/session/seam_driver.py with the stage's seams and its own ways of calling before it."""
    if stage.form is None:
        return stage.text("driver.py")
    told = {
        "seams": {name: _told(seam) for name, seam in stage.form.seams.items()},
        "ways": sorted(stage.form.ways),
        "refused": list(stage.form.refused),
        "driver": stage.text("driver.py") if stage.form.ways else "",
    }
    return f"import json\n\nSTAGE = json.loads({json.dumps(told)!r})\n{_SHARED.read_text()}"


def _told(seam: SeamLine) -> dict[str, object]:
    return {
        "name": seam.name,
        "signature": seam.python_signature(),
        "arguments": [_argument(each) for each in seam.arguments],
        "results": [_argument(each) for each in seam.results],
    }


def _argument(each: Argument) -> dict[str, object]:
    dims = list(each.dims)
    return {"name": each.name, "role": each.role.value, "dtype": each.dtype, "dims": dims, "keyword": each.keyword}
