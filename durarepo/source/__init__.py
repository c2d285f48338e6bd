"""What is backed up, as it lies on this machine: walked, described and read, never changed.

`walk` finds names, `metadata` describes them, `reading` takes their bytes, `sqlitestate` takes
databases. Nothing here follows a symlink, opens a special file or writes beside a source.
"""
