"""Words that every floor shares: ids, entries, errors and limits. Imports nothing of durarepo."""
