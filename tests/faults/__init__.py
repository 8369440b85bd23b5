"""Faults: what damaged, hostile and impossible data does to an evaluation."""
