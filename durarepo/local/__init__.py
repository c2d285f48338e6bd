"""What a computer keeps beside the store: places, keys, lock, work files, journal, state, audit.

Nothing here is needed to read a repository elsewhere. Start at `places`.
"""
