"""Rules that need no disk: what is fresh. Pure; `now` is always an argument."""
