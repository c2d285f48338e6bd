"""`durarepo-mirror`: a server that keeps objects for clients and can neither read nor lose them.

It never deletes and never overwrites. Start at ``app.py``; ``serving.py`` runs it.
"""
