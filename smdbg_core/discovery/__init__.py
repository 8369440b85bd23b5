"""Plugins: find, load, classify, register and call them."""
