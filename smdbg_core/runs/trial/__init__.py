"""Trials: folders of saved tensors, read and written."""

from __future__ import annotations

from smdbg_core.runs.damage import Damage, RecordError
from smdbg_core.runs.trial.collections import Collection, SaveConfig
from smdbg_core.runs.trial.growing import GrowingTrial, Growth
from smdbg_core.runs.trial.index import Entry, Layout, StepFile
from smdbg_core.runs.trial.modes import Mode
from smdbg_core.runs.trial.reader import TrialReader, open_trial, read_trial
from smdbg_core.runs.trial.tensor import REDUCTIONS, Tensor
from smdbg_core.runs.trial.trial import Trial
from smdbg_core.runs.trial.writer import StepWriter, TrialWriter

__all__ = [
    "REDUCTIONS",
    "Collection",
    "Damage",
    "Entry",
    "Growth",
    "GrowingTrial",
    "Layout",
    "Mode",
    "RecordError",
    "SaveConfig",
    "StepFile",
    "StepWriter",
    "Tensor",
    "Trial",
    "TrialReader",
    "TrialWriter",
    "open_trial",
    "read_trial",
]
