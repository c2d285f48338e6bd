"""Bytes of the format and their values, both ways. Pure: no file, no clock, no key."""
