"""Rules that were written for smdebug, run as they are.

What such a rule imports of smdebug is offered while its file is imported and while it is called; an
installed smdebug is left alone.
"""

from __future__ import annotations

from smdbg_core.smdebug.adapter import adapted, is_custom_rule
from smdbg_core.smdebug.modules import standing_in

__all__ = ["adapted", "is_custom_rule", "standing_in"]
