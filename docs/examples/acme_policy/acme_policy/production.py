"""No rule stops a production job."""

from __future__ import annotations

from collections.abc import Generator

from smdbg_actions import StopTraining
from smdbg_core import Action, ActionResult, Event, Veto, hookimpl

PREFIX = "prod-"


@hookimpl(wrapper=True)
def smdbg_dispatch_action(action: Action, event: Event) -> Generator[None, ActionResult, ActionResult]:
    """Veto StopTraining where the job that it would stop is, or may be, a production job."""
    if isinstance(action, StopTraining):
        wanted = action.training_job_prefix
        if wanted is None:
            protected = (event.job_name or "").startswith(PREFIX)
        else:
            # A prefix that is shorter than ours finds production jobs, too.
            protected = wanted.startswith(PREFIX) or PREFIX.startswith(wanted)
        if protected:
            raise Veto(f"{wanted or event.job_name}: rules do not stop production jobs, page the owner")
    return (yield)
