"""Trials: folders of saved tensors, read and written."""
