"""The command line of durarepo: parse, call one operation, print one result, choose one exit code.

Nothing is decided here that a library user would miss: what a command does stands in
``durarepo.operations``. Source: spec/cli.md. Start at ``main.main``.
"""
