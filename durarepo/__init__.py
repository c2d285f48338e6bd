"""durarepo: durable, verifiable backup of the working state of AI agents.

This file is the tour. It holds the version and nothing else that runs.

The verbs, in the order of a stream's life::

    snapshot     roots -> sealed packs -> one signed manifest
    verify       chain, packs, data: is what is stored still what was signed
    push         to every remote, nothing ever deleted or overwritten
    fetch        from a remote; nothing is admitted before every check has passed
    checkout     a verified manifest -> a new scratch folder, held
    archival     the same for an expired manifest, with a human at a terminal
    activate     a human releases the hold
    nightly      snapshot, push and restore-verify; one status line on every exit path
    deadman      has all that happened lately? A separate check, without keys
    conformance  may this stream be called durable? Answered from signed evidence

The floors; a module imports only from floors below its own::

    operations                             one verb each, read as a pipeline
    repository                             chunks <-> packs, manifests <-> folders
    source | local                         what is backed up; this machine
    store                                  write-once files and objects
    ingest                                 untrusted bytes -> verified manifest
    sealing                                seal and open frames and documents
    format | crypto | chunking | policy    encodings; primitives; cuts; rules
    core                                   ids, entries, errors, limits

Everything up to ``ingest`` is pure: no file, clock, socket or environment.
What the bytes mean is ruled by spec/format.md, how they are admitted by spec/ingest.md.

Start at ``operations/snapshot.py``.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
