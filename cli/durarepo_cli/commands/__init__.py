"""One module a command, or a group of commands; the table of them is in ``program``.

Each parses its call, calls one operation and prints one result, as text and as JSON.
Source: spec/cli.md 4. Start at ``init``.
"""
