"""Bytes: files of a run, wherever they lie."""
