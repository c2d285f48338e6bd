"""What each error code means, why it comes about and what to do: the pages of ``explain``.

The one source of these words; spec/errors.md is the same table for readers, and tests compare
it with this one, and both with the places where errors are raised.
Source: spec/errors.md. Start at `PAGES`.
"""

from typing import NamedTuple

from durarepo_cli.exits import CODE_EXITS, FAMILY_EXITS, Exit


class Page(NamedTuple):
    """Three sentences about one error code."""

    meaning: str
    cause: str
    fix: str


def exit_of_code(code: str) -> Exit:
    """Return the exit code of an error code that has a page."""
    return CODE_EXITS.get(code) or FAMILY_EXITS[code.partition(".")[0]]


PAGES = {
    "config.allow": Page(
        "an [[allow]] entry cannot be accepted",
        "its date is none, or more than 90 days off",
        "write the date as YYYY-MM-DD, at most 90 days from now",
    ),
    "config.ca": Page(
        "no authority for a remote's certificate can be loaded",
        "the CA file holds none, or this system has none",
        "name a CA file in PEM, or install ca-certificates",
    ),
    "config.destination": Page(
        "the destination of a restore cannot be used",
        "it has no name of its own, or the folder above it does not exist",
        "make the folder above, or choose another destination",
    ),
    "config.draft": Page(
        "that is no draft, and no signed registry",
        "another file was named, or it was changed on its way",
        "name the file that `durarepo registry draft` or `registry sign` wrote",
    ),
    "config.draft-stale": Page(
        "the draft does not go on from where the chain is",
        "a snapshot was made after it was drafted",
        "draft it again, and take no snapshot until it is admitted",
    ),
    "config.duration": Page(
        "that is no duration",
        "it is not a number and s, m or h",
        "write it as 45s, 30m or 4h",
    ),
    "config.epoch": Page(
        "no epoch can begin there",
        "the epoch in force has no manifest before it",
        "take a snapshot first",
    ),
    "config.exists": Page(
        "the stream, or something of it, is there already",
        "init ran before for this id, perhaps interrupted",
        "use the stream that is there, choose another id, or move the named folder away",
    ),
    "config.home": Page(
        "the home folder is not known",
        "neither HOME nor the XDG variable names an absolute folder",
        "set HOME",
    ),
    "config.invalid": Page(
        "stream.toml cannot be accepted",
        "no TOML, a value of the wrong type or out of bounds",
        "correct the named key",
    ),
    "config.mirror": Page(
        "the settings of durarepo's server cannot be accepted",
        "mirror.toml, or a file or address that it names, cannot be used",
        "correct what the message names",
    ),
    "config.no-root": Page(
        "a stream needs a folder to keep",
        "init was called without --root",
        "name one with --root",
    ),
    "config.own-recipient": Page(
        "the recipient to retire is the identity of this computer",
        "it could read nothing afterwards, not even the newest snapshot",
        "add the new recipient first, then retire this one where another identity is",
    ),
    "config.put-only": Page(
        "--put-only and --out belong together",
        "only one of them was given",
        "give both: the folder of --out takes identity, owner key and card",
    ),
    "config.recipients": Page(
        "the recipients cannot be so",
        "a stream has two at least, four at most from init and eight later",
        "add the new one before the old one is retired, or name fewer",
    ),
    "config.registry-size": Page(
        "the registry would be too long",
        "it holds too many epochs",
        "make a new stream with `durarepo init`",
    ),
    "config.remote-url": Page(
        "that is no URL of a remote",
        "another scheme, a user or password in it, an odd path, or a folder of the stream itself",
        "write https://HOST/PATH/ or file:///DIR",
    ),
    "config.revoke": Page(
        "that is no revocation",
        "it is not SIGNER@SEQ",
        "name a signer from `durarepo registry show` and its last good manifest",
    ),
    "config.root-name": Page(
        "the path of a root is not UTF-8",
        "stream.toml cannot hold such a name",
        "name a folder above it as the root",
    ),
    "config.roots-nested": Page(
        "one root lies in another",
        "what is in both would be kept twice",
        "name the outer folder only",
    ),
    "config.signer": Page(
        "that signer cannot be revoked or admitted",
        "its id is not known or not complete, or it has been revoked",
        "see `durarepo registry show` for the signers",
    ),
    "config.stream": Page(
        "that is no stream id",
        "ids are lower-case letters, digits and '-', at most 63, not beginning with '-'",
        "choose another id",
    ),
    "config.tokens": Page(
        "a line of the tokens file cannot be accepted",
        "it is not SCOPE RIGHT SHA256, or a token stands twice",
        "correct the named line",
    ),
    "config.type": Page(
        "a snapshot cannot be of that type",
        "the type is not one of the four that are known",
        "use manual, pre-shutdown, pre-upgrade or auto",
    ),
    "config.unknown-key": Page(
        "stream.toml has a key that is not known",
        "a typing mistake, or a file for a newer durarepo",
        "correct or remove the named key",
    ),
    "config.usage": Page(
        "the call is not one that durarepo knows",
        "a wrong option, a missing argument, or options that exclude each other",
        "read `durarepo COMMAND --help`",
    ),
    "select.no-code": Page(
        "there is no such error code",
        "a typing mistake, or a code of another version",
        "see spec/errors.md",
    ),
    "select.no-component": Page(
        "the manifest has no such component",
        "a typing mistake, or another manifest has it",
        "see `durarepo show SEQ`",
    ),
    "select.no-file": Page(
        "that is no regular file",
        "it is a folder, link or special file",
        "see `durarepo ls SEQ PATH`",
    ),
    "select.no-folder": Page(
        "there is no such folder",
        "the path is wrong",
        "check the path",
    ),
    "select.no-path": Page(
        "the manifest has nothing at that path",
        "a typing mistake, or another manifest has it",
        "see `durarepo ls SEQ --recursive`",
    ),
    "select.no-remote": Page(
        "stream.toml names no such remote",
        "a typing mistake, or it was taken out",
        "see `durarepo remote list`",
    ),
    "select.no-sequence": Page(
        "there is no such manifest",
        "the number is too high, or nothing is that old",
        "choose one from `durarepo log`",
    ),
    "select.not-there": Page(
        "there is no file at that path",
        "it was misspelt, or removed",
        "check its spelling",
    ),
    "select.outside": Page(
        "a path to judge lies in no root",
        "the wrong folder was named, or none",
        "name the root, and paths below it",
    ),
    "select.path": Page(
        "that is no path",
        "it has '..', '//' or the like",
        "write it as `durarepo ls` prints it",
    ),
    "select.pattern": Page(
        "that is no pattern",
        "it is empty or too long",
        "write a glob on the whole path",
    ),
    "select.relative-path": Page(
        "a path without a leading slash means nothing here, or two things",
        "the stream has several roots, or both the root and the current folder have that path",
        "write the absolute path, or begin with ./ in a folder of a root",
    ),
    "select.sequence": Page(
        "that names no manifest",
        "it is neither number, latest, latest~N, date nor instant",
        "use one of these",
    ),
    "select.several": Page(
        "several repositories are there",
        "nothing says which is meant",
        "name one with --repo",
    ),
    "repository.absent": Page(
        "there is no repository here",
        "none was made yet, or --repo or DURAREPO_REPO name another place",
        "check the path, or make one with `durarepo init`",
    ),
    "repository.stream": Page(
        "the repository is of another stream",
        "stream.toml was changed or moved",
        "name the right repository with --repo",
    ),
    "run.budget": Page(
        "the time budget is spent",
        "there was more to read than time",
        "run again; it goes on from the resume point",
    ),
    "run.interrupted": Page(
        "the run was interrupted",
        "Ctrl-C",
        "run the command again; nothing half done is visible",
    ),
    "run.locked": Page(
        "another run holds the lock",
        "a snapshot or another writing command is under way",
        "wait for it, then run again",
    ),
    "run.terminated": Page(
        "the run was told to end",
        "SIGTERM or SIGHUP, for example by a shutdown",
        "run the command again; nothing half done is visible",
    ),
    "keys.acl": Page(
        "an access list lets others at a key",
        "an ACL on the file or on a folder on the way",
        "remove it with setfacl -b",
    ),
    "keys.card": Page(
        "the card cannot be read",
        "it is cut short, or is no card",
        "use another copy of the card",
    ),
    "keys.card-form": Page(
        "the content of the card is wrong",
        "damage, or another version",
        "use another copy of the card",
    ),
    "keys.crypto-pin": Page(
        "the cryptography package is not the pinned one",
        "another version, a changed file, or a package that is not native",
        "install the pinned version, or let durarepo make its environment anew",
    ),
    "keys.exists": Page(
        "a key file is there already",
        "keys are never replaced",
        "move the old file away if it is not needed any more",
    ),
    "keys.folder-mode": Page(
        "others may change a folder that leads to the keys",
        "a folder on the way is writable for others",
        "chmod go-w the named folder",
    ),
    "keys.identity-absent": Page(
        "this computer may only write",
        "identity.key is not here, so nothing can be opened",
        "run the command where the identity is",
    ),
    "keys.linked": Page(
        "a key file is a link, or has a second name",
        "it was linked from elsewhere",
        "keep one file, in the keys folder only",
    ),
    "keys.malformed": Page(
        "a key file does not hold a key of that kind",
        "it was edited, cut short or mixed up",
        "bring back the right file",
    ),
    "keys.missing": Page(
        "a key file is not there",
        "it was moved, or the keys folder is another one",
        "bring it back; DURAREPO_KEYS names the folder of keys",
    ),
    "keys.mode": Page(
        "others may read a key file",
        "its mode is not 0600",
        "chmod 600 the file, and think about who has read it",
    ),
    "keys.naming-absent": Page(
        "the naming key in force is not here",
        "the epoch was begun on another computer",
        "bring its keys folder, or an identity that opens the registry's copy",
    ),
    "keys.not-recipient": Page(
        "what is to be read is sealed to others than the identity here, and whole",
        "this identity was retired before it was made, or added after",
        "use a computer whose identity is a recipient; durarepo log tells what this one opens",
    ),
    "keys.owner": Page(
        "a key file, or a folder that leads to it, belongs to somebody else",
        "it was copied by another user",
        "chown it to the user who runs durarepo",
    ),
    "keys.owner-absent": Page(
        "a change waits for the owner's signature",
        "owner.key is not on this computer, as it should be",
        "sign the draft where the key is, then admit it",
    ),
    "keys.placement": Page(
        "the keys lie where a root could reach them",
        "the keys folder is inside a root, also by a link or mount",
        "move the keys or narrow the root, as the hint says",
    ),
    "keys.placement-unknown": Page(
        "it cannot be told whether a root reaches the keys",
        "the mounts of this system cannot be read",
        "make /proc readable",
    ),
    "keys.signing-absent": Page(
        "this computer may only read",
        "signing.key is not here",
        "make snapshots on the working computer",
    ),
    "keys.signing-refused": Page(
        "the signing key here may not sign manifests",
        "it was rotated away or revoked, or another computer has taken over",
        "see `durarepo registry show`; let the owner admit a new signer",
    ),
    "keys.size": Page(
        "a key file is too long",
        "it is no key file",
        "bring back the right file",
    ),
    "keys.unreadable": Page(
        "a key file or the keys folder cannot be read",
        "rights, or a failing disk",
        "check the owner and the disk",
    ),
    "source.changed-type": Page(
        "a name became something else while it was read",
        "something works on the folder",
        "run again; if it stays, look what changes it",
    ),
    "source.root-empty-mount": Page(
        "a root is an empty mount point and held files before",
        "its disk is not mounted",
        "mount it",
    ),
    "source.root-missing": Page(
        "a root is not there",
        "a disk is not mounted, or the folder was moved",
        "mount or bring it back; nothing was kept of this run",
    ),
    "source.root-not-directory": Page(
        "a root is no folder",
        "a file stands there",
        "name the folder that holds it",
    ),
    "source.root-not-files": Page(
        "a root is not on a file system with files",
        "it is a special file system such as /proc",
        "name a folder with files",
    ),
    "source.root-unreadable": Page(
        "a root cannot be read",
        "rights, or a failing disk",
        "give durarepo the right to read it",
    ),
    "source.scanner": Page(
        "contents cannot be scanned for secrets",
        "a package of durarepo is not installed",
        "install durarepo with all its dependencies; nothing is kept unscanned",
    ),
    "source.unreadable": Page(
        "a file or folder cannot be read",
        "rights, or a failing disk",
        "give durarepo the right to read it, or exclude it",
    ),
    "source.vanished": Page(
        "a name was gone before it was opened",
        "something works on the folder",
        "nothing; this does not count against the run",
    ),
    "store.absent": Page(
        "the folder of objects is not there",
        "it was moved, or a disk is not mounted",
        "bring it back",
    ),
    "store.catalog": Page(
        "the catalogue cannot be used",
        "disk or rights",
        "check both; the catalogue may be moved away and is built anew",
    ),
    "store.catalog-damaged": Page(
        "the catalogue was damaged and was set aside",
        "a failing disk or a kill of the machine",
        "run again; it is built anew from the packs",
    ),
    "store.full": Page(
        "the disk of the repository or state is full",
        "no space, no inodes, or a quota",
        "free space, then run again",
    ),
    "store.io": Page(
        "reading or writing failed",
        "a failing disk, or a folder that is no folder",
        "look at the disk and the system log",
    ),
    "store.journal-full": Page(
        "the journal of a run is at its limit",
        "a run that was resumed very often",
        "run again",
    ),
    "store.mounted": Page(
        "something is mounted in a folder that is to be removed",
        "a mount inside the work folder",
        "unmount it",
    ),
    "store.no-journal": Page(
        "the journal of a run is gone",
        "it was removed while a run used it",
        "run again",
    ),
    "store.object-limit": Page(
        "the per-object limit is too low",
        "less than 1 MiB is configured",
        "raise max_object_bytes",
    ),
    "store.output": Page(
        "standard output cannot take the result",
        "it is closed, or its disk is full",
        "give it a standard output that can be written; the work itself is done",
    ),
    "store.permission": Page(
        "the repository or state cannot be written or read",
        "owner, mode or a read-only mount",
        "check the owner, mode and mount of the named folder",
    ),
    "store.pins": Page(
        "the snapshot needs more packs than a manifest can name",
        "very many small packs",
        "make a new stream",
    ),
    "store.size": Page(
        "a local file is longer than it may be",
        "it is not what durarepo wrote",
        "move it away and look at it",
    ),
    "store.space": Page(
        "there is not enough space for what is to be written",
        "checked beforehand, nothing was written",
        "free space, then run again",
    ),
    "store.state-damaged": Page(
        "a state file is damaged",
        "a failing disk, or it was edited",
        "bring it back, or move it away: the state then counts as lost",
    ),
    "store.state-version": Page(
        "a state file is of a newer version",
        "a newer durarepo wrote it",
        "install that version",
    ),
    "store.work-unwritable": Page(
        "something in the work folder cannot be removed",
        "its rights or attributes were changed",
        "remove it by hand",
    ),
    "integrity.audit-chain": Page(
        "a line of the audit log does not follow the one before",
        "the log was changed",
        "compare its head with the signed manifests",
    ),
    "integrity.card-form": Page(
        "the content of a card is malformed",
        "damage, or another version",
        "use another copy of the card",
    ),
    "integrity.cbor-depth": Page(
        "an encoded value is nested too deep",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.cbor-form": Page(
        "an encoded value is not in its one form",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.cbor-keys": Page(
        "the keys of an encoded map are wrong",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.cbor-length": Page(
        "an encoded value is cut short, or more follows",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.cbor-text": Page(
        "an encoded text is not UTF-8",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.cbor-type": Page(
        "an encoded value is of a kind that the format does not have",
        "damage, or a wrong writer",
        "bring the object back from a copy",
    ),
    "integrity.chunk-id": Page(
        "content is not what its id says",
        "damage, or a wrong writer",
        "bring the pack back from a copy",
    ),
    "integrity.chunk-missing": Page(
        "content that a file needs is in no pack",
        "a pack was lost, or a wrong writer",
        "bring the packs back from a copy",
    ),
    "integrity.commitment": Page(
        "an object was not sealed for this key",
        "damage, or keys of another stream",
        "check the keys; bring the object back from a copy",
    ),
    "integrity.comparison": Page(
        "what was restored differs from the source",
        "it must not happen",
        "keep the repository as it is and report it",
    ),
    "integrity.component": Page(
        "a component is not what was signed",
        "damage, or a wrong writer",
        "restore another manifest, or bring the packs back from a copy",
    ),
    "integrity.component-index": Page(
        "the components of a manifest are not those that were signed",
        "damage, or a wrong writer",
        "bring it back from a copy",
    ),
    "integrity.content": Page(
        "the content of a file is not described as it must be",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.document": Page(
        "a signed document is malformed",
        "damage",
        "bring it back from a copy",
    ),
    "integrity.entry": Page(
        "an entry of a folder is malformed",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.file-hash": Page(
        "the content of a file is not what was signed",
        "damage, or a wrong writer",
        "bring the packs back from a copy; other files can be restored with --path",
    ),
    "integrity.file-size": Page(
        "a file is longer or shorter than was signed",
        "damage, or a wrong writer",
        "bring the packs back from a copy",
    ),
    "integrity.frame-digest": Page(
        "stored bytes are not those that the index names",
        "damage",
        "bring the pack back from a copy",
    ),
    "integrity.frame-inflate": Page(
        "stored bytes do not unpack to what they should",
        "damage, or a wrong writer",
        "bring the pack back from a copy",
    ),
    "integrity.frame-seal": Page(
        "stored bytes do not open",
        "damage",
        "bring the pack back from a copy",
    ),
    "integrity.gap": Page(
        "a manifest is missing in the row",
        "it was deleted",
        "bring it back from a copy",
    ),
    "integrity.index-digest": Page(
        "the index of a pack is not the pinned one",
        "damage",
        "bring the pack back from a copy",
    ),
    "integrity.index-form": Page(
        "the index of a pack is malformed",
        "damage, or a wrong writer",
        "bring the pack back from a copy",
    ),
    "integrity.index-seal": Page(
        "the index of a pack does not open",
        "damage, or another naming key",
        "bring the pack back from a copy",
    ),
    "integrity.journal": Page(
        "the resume point of a run contradicts itself",
        "it was edited, or a disk damaged it",
        "move the journal away; the next snapshot reads everything again",
    ),
    "integrity.link-group": Page(
        "names that should be one file are not",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.mark": Page(
        "an envelope does not carry the mark of this stream",
        "damage, or somebody wrote there",
        "bring it back from a copy",
    ),
    "integrity.name": Page(
        "a name is one that no file can have",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.name-collision": Page(
        "a name stands twice in one folder",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.nested": Page(
        "the sealed part of a manifest does not open",
        "damage",
        "bring it back from a copy",
    ),
    "integrity.nested-form": Page(
        "the sealed part of a manifest is malformed",
        "damage, or a wrong writer",
        "bring it back from a copy",
    ),
    "integrity.object-differs": Page(
        "a stored object has another content than the one to be stored under its name",
        "damage, or somebody wrote there",
        "move it aside and look at it; bring it back from a copy",
    ),
    "integrity.object-missing": Page(
        "a stored object is not there",
        "it was deleted, or a disk lost it",
        "bring it back from a copy",
    ),
    "integrity.object-name": Page(
        "an object has another content than its name says",
        "damage",
        "bring it back from a copy",
    ),
    "integrity.object-short": Page(
        "a stored object is shorter than it should be",
        "it was cut, or a disk lost the rest",
        "bring it back from a copy",
    ),
    "integrity.object-size": Page(
        "a stored object has a size that none can have",
        "it was cut or grown",
        "bring it back from a copy",
    ),
    "integrity.pack-header": Page(
        "the beginning of a pack is wrong",
        "damage",
        "bring it back from a copy",
    ),
    "integrity.pack-missing": Page(
        "a pack that a manifest needs is not there",
        "it was deleted, or a disk lost it",
        "bring it back from a copy",
    ),
    "integrity.padding": Page(
        "the padding of an object is wrong",
        "damage",
        "bring it back from a copy",
    ),
    "integrity.path": Page(
        "a path is one that no restore may write to",
        "a wrong writer, perhaps an attack",
        "restore another manifest, and find out who wrote this one",
    ),
    "integrity.pins": Page(
        "what a manifest pins is malformed",
        "damage, or a wrong writer",
        "bring it back from a copy",
    ),
    "integrity.registry": Page(
        "the registry is malformed",
        "damage, or a wrong writer",
        "bring it back from a copy",
    ),
    "integrity.seal": Page(
        "sealed bytes do not open",
        "damage",
        "bring the object back from a copy",
    ),
    "integrity.sidecar": Page(
        "a database would be restored with a sidecar of another moment",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.stanza": Page(
        "the part of an object that is for this key does not open",
        "damage, or keys of another stream",
        "check the keys; bring the object back from a copy",
    ),
    "integrity.statement": Page(
        "the statement of a manifest is malformed",
        "damage, or a wrong writer",
        "bring it back from a copy",
    ),
    "integrity.trailer": Page(
        "the end of a pack is wrong",
        "damage, or it was cut",
        "bring it back from a copy",
    ),
    "integrity.tree-form": Page(
        "the description of a folder is malformed",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.tree-order": Page(
        "the names of a folder are out of order",
        "a wrong writer",
        "restore another manifest",
    ),
    "integrity.verify": Page(
        "a verification found wrong bytes",
        "damage",
        "bring the named objects back from a copy",
    ),
    "integrity.version": Page(
        "an object is of a format version that is not known here",
        "damage, or a newer durarepo",
        "install the newer version, or bring it back from a copy",
    ),
    "trust.epoch": Page(
        "it belongs to another epoch",
        "parts were mixed up, or the registry is old",
        "bring the newest registry",
    ),
    "trust.floor": Page(
        "a manifest is below the floor that the owner set",
        "it was retired on purpose",
        "use a newer one",
    ),
    "trust.fork": Page(
        "there are two different manifests of one number",
        "two machines wrote, or somebody forged one",
        "compare the copies",
    ),
    "trust.header": Page(
        "a document is signed for another header",
        "somebody put parts together",
        "do not use it; look for a good copy",
    ),
    "trust.lifetime": Page(
        "a manifest does not live exactly 24 hours",
        "a wrong writer",
        "do not use it",
    ),
    "trust.link": Page(
        "a manifest does not continue the one before it",
        "parts were mixed up, or two machines wrote",
        "compare the copies",
    ),
    "trust.owner": Page(
        "the registry is signed by another owner",
        "it is of somebody else",
        "check where it came from",
    ),
    "trust.registry-change": Page(
        "a registry would change what is fixed",
        "a mistake in the draft, or somebody else's draft",
        "do not sign or admit it; draft it again",
    ),
    "trust.registry-version": Page(
        "the registry is older than one that was seen, or is missing",
        "it was rolled back or deleted",
        "bring the newest registry back",
    ),
    "trust.role": Page(
        "the signer may not sign this",
        "its role in the registry is another one",
        "let the right signer sign",
    ),
    "trust.rollback": Page(
        "what is there is older than what was seen before",
        "the newest was deleted, or the repository was replaced by an old copy",
        "bring the newest back; compare `durarepo log` with the card",
    ),
    "trust.sequence": Page(
        "a manifest has another number than the one looked for",
        "parts were mixed up",
        "look for a good copy",
    ),
    "trust.signature": Page(
        "a signature is wrong",
        "it was forged or damaged",
        "do not use it; look for a good copy",
    ),
    "trust.slots": Page(
        "there is no free name for the next manifest",
        "somebody put objects in its places",
        "move them away and find out who put them there",
    ),
    "trust.stream": Page(
        "it belongs to another stream, or stream.toml contradicts the registry",
        "parts were mixed up",
        "put back what stream.toml said, or bring the right object",
    ),
    "trust.type": Page(
        "a document is of another kind",
        "somebody put parts together",
        "do not use it; look for a good copy",
    ),
    "trust.unknown-signer": Page(
        "the signer is not registered",
        "somebody else signed, or the registry is old",
        "bring the newest registry, or do not use it",
    ),
    "trust.verify": Page(
        "a verification found what is not to be trusted",
        "somebody put it there, or parts were mixed up",
        "compare the copies",
    ),
    "trust.weak-key": Page(
        "a public key is one that proves nothing",
        "a wrong writer, perhaps an attack",
        "do not use it",
    ),
    "fresh.ahead": Page(
        "it claims to come from the future",
        "a clock was wrong, here or where it was made",
        "set the clock",
    ),
    "fresh.clock": Page(
        "the clock is behind a time that has been before",
        "the clock was set back",
        "set the clock",
    ),
    "fresh.expired": Page(
        "the manifest has expired",
        "it is older than 24 hours",
        "a human restores it: `durarepo checkout --archival`",
    ),
    "fresh.registry-expired": Page(
        "the registry has expired",
        "the owner did not renew it",
        "go on writing; read with `durarepo checkout --archival`; no renewal in this version",
    ),
    "fresh.revoked": Page(
        "the signer was revoked before this manifest",
        "its key may have been stolen",
        "use one from before the revocation, or a new one",
    ),
    "remote.absent": Page(
        "the folder of a remote is not there",
        "its disk is not mounted, or it was never made",
        "mount the disk, or make the folder",
    ),
    "remote.answer": Page(
        "a remote answered what it should not",
        "another server, a wrong path in the URL, or one that cannot do it",
        "check the URL, and what the specification asks of a server",
    ),
    "remote.folder": Page(
        "the folder of a remote cannot be used",
        "rights, or a failing disk or network file system",
        "check owner, mode, mount and disk",
    ),
    "remote.full": Page(
        "a remote takes no more",
        "its disk or quota is full, or it takes only smaller objects",
        "free space there, or raise quota or limit",
    ),
    "remote.no-listing": Page(
        "a remote does not list what it has",
        "plain servers do not",
        "use a remote that does",
    ),
    "remote.refused": Page(
        "a remote refused the credentials",
        "they are wrong, expired, or of another stream",
        "check the credentials file and what they allow",
    ),
    "remote.tls": Page(
        "a remote's certificate is not accepted",
        "it expired, is for another name or of another CA, or somebody stands between",
        "check certificate, host name and CA file; nothing turns the check off",
    ),
    "remote.unreachable": Page(
        "a remote did not answer in time, though tried several times",
        "the network or the server is down or overloaded",
        "check both, then run again",
    ),
    "policy.destination-exists": Page(
        "the destination is there already",
        "a restore never overwrites",
        "name a new folder",
    ),
    "policy.destination-parent": Page(
        "the destination cannot be made there",
        "the folder above is missing, or others can write there",
        "name a folder in a place of your own",
    ),
    "policy.destination-protected": Page(
        "the destination lies in a root, a repository, a state or the keys",
        "it would be kept again, or harm a stream",
        "name a folder elsewhere",
    ),
    "policy.held": Page(
        "a folder is held after a restore",
        "nobody has released it yet",
        "look at it, then remove held.json and provenance.json in its .durarepo by hand",
    ),
    "policy.no-human": Page(
        "this needs a human at a terminal",
        "it was called by a program, or the answers were wrong",
        "run it yourself and type the answers it prints",
    ),
    "policy.not-content": Page(
        "a file is not left out for its content",
        "its name or a mark of its folder leaves it out, and an entry keeps contents only",
        "give it another name, move it, or remove the mark",
    ),
    "policy.not-needed": Page(
        "there is nothing to allow",
        "the policy keeps that file as it is",
        "see durarepo exclude explain, and 'exclude' of the root in stream.toml",
    ),
    "policy.not-ours": Page(
        "something is not durarepo's to remove",
        "it was not made by a run of durarepo",
        "look at it, and remove it by hand",
    ),
    "policy.not-waivable": Page(
        "no entry can keep that file",
        "more than the header of a key stands there",
        "take the secret out of the file",
    ),
    "policy.secrets-stored": Page(
        "stored snapshots hold what today's rules leave out",
        "it was stored before the rule was there, or before the file was known for what it is",
        "change it at its issuer; the owner retires the manifests at the store",
    ),
    "bug.unexpected": Page(
        "durarepo did what it never should",
        "a mistake in durarepo",
        "run again with -v and report the places it names",
    ),
}
"""Every error code, by family."""

MATTERS = {
    "human": Page(
        "nobody is named whom a failure wakes",
        "init was called without --human",
        "name somebody under [human] in stream.toml; this version wakes nobody: look at status",
    ),
    "remote": Page(
        "no store on another machine is named",
        "a loss of this machine would take the backup with it",
        "copy the repository to another machine yourself: no command sends it in this version",
    ),
    "escrow": Page(
        "owner key, card or keys file are still on this machine",
        "init wrote them into the keys folder, and they belong elsewhere",
        "take the card and the .keys file off this machine, to whom you trust",
    ),
    "card": Page(
        "the escrow card is older than the keys",
        "recipients or epochs have changed since it was made",
        "keep the card for what was kept before; until there is a new one keep a copy of the keys",
    ),
    "registry": Page(
        "the registry expires within 60 days, or has expired",
        "the owner has not renewed it for a year",
        "renew it: `durarepo registry draft`, then sign and admit it",
    ),
    "timer": Page(
        "nothing takes snapshots by itself",
        "init makes no timer",
        "let cron or a systemd timer of yours run `durarepo snapshot` every day",
    ),
    "identity-on-this-machine": Page(
        "this machine can read what it keeps, and so can who takes it over",
        "the stream was made without --put-only",
        "move identity.key away if this machine need not read",
    ),
}
"""What is still open, by the words of ``init`` and ``status``; no error has these."""
