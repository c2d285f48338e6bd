"""Where objects are kept: the port, write-once files, and a folder as a store.

Nothing here can delete or overwrite an object (spec/format.md 12, law 4). Start at `port`.
"""
