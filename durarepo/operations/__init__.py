"""What durarepo does, one function an operation, each read from top to bottom as its pipeline.

Operations hold no cryptography and no format, print nothing and read no clock: the caller gives
one. They do not call each other, except those that are made of others. Start at any of them.
"""
