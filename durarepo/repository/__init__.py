"""What stands on store, source and local: objects that commands hold, and restored files."""
