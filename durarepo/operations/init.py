"""Make a stream: repository, keys, owner, registry 1 and escrow card.

Nothing is made before all that can be refused has been. The owner key, the card and the keys
file belong off this computer; until they are gone `todo` says so. On a put-only machine they
and the identity go to a folder of the operator's choice and nowhere else.
Source: spec/cli.md 3 and 4, spec/format.md 3, 8 and 10. Start at `initialise`.
"""

import os
from dataclasses import dataclass

from durarepo.core.errors import ConfigurationError, KeyMaterialError, SourceError
from durarepo.core.limits import REGISTRY_MAX_BYTES, REGISTRY_TTL_MAX_SECONDS, RETENTION_DAYS
from durarepo.core.names import ZERO_DIGEST, Sequence, is_stream_id
from durarepo.core.secret import Secret
from durarepo.crypto import primitives
from durarepo.format.document import REGISTRY_TYPE
from durarepo.format.keytext import (
    Card,
    CardStream,
    armour,
    encode_card,
    encode_key,
    encode_keys_file,
)
from durarepo.format.layout import Compartment, Seal, fitting_class
from durarepo.format.registry import (
    Epoch,
    Registry,
    Retention,
    Role,
    Signer,
    StreamRecord,
    encode_registry,
)
from durarepo.local import keyring
from durarepo.local.configuration import (
    HumanConfig,
    RootConfig,
    StreamConfig,
    check_roots,
    compose_configuration,
    real_root,
)
from durarepo.local.placement import check_outside
from durarepo.local.places import SCRATCH, Places
from durarepo.local.secretfiles import prepare_secret_folder, write_secret_new
from durarepo.local.statefiles import HighWater, StateFiles
from durarepo.repository.recipientkey import recipient_given
from durarepo.repository.repository import registry_slot
from durarepo.sealing import seal_box, seal_registry, sign_document
from durarepo.store.atomic import make_folder, shown, write_once
from durarepo.store.localdir import LocalDir

RESERVED = os.fsdecode(SCRATCH)
"""No stream can be called so: in the folder of all streams' state it is that of restores."""
_STANZAS = 4
_DATA_RECIPIENTS_MAX = 4
_REGISTRY_ROOM = 1 + 32 + 32 + 12 + 16 + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class InitRequest:
    """What a new stream is to be. ``recipients`` are key texts or paths of files with one."""

    stream: str
    roots: tuple[bytes, ...]
    places: Places
    compartment: str | None = None
    never_publish: bool = False
    recipients: tuple[str, ...] = ()
    put_only: bool = False
    out: bytes | None = None
    human: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What was made, and the words for what is still open."""

    stream: str
    repository: bytes
    keys: bytes
    card: bytes
    todo: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _NewKeys:
    """The secrets of a new stream."""

    signing: bytes
    naming: bytes
    locator: bytes
    owner: bytes
    identity: bytes
    escrow: bytes


def initialise(request: InitRequest, *, now: int) -> Initialised:
    """Make the stream that ``request`` describes.

    Args:
        request: what it is to be.
        now: the live time, in seconds since 1970.

    Raises:
        ConfigurationError: the request, or the stream exists already.
        SourceError: a root is missing.
        KeyMaterialError: the keys would lie within a root, or a recipient is malformed.
        StoreError: something cannot be written.
    """
    config = _configuration(request)
    _check_new(request)
    recipients = [recipient_given(text) for text in request.recipients]
    keys = _NewKeys(
        signing=primitives.random_key() + primitives.random_key(),
        naming=primitives.random_key(),
        locator=primitives.random_key(),
        owner=primitives.random_key() + primitives.random_key(),
        identity=primitives.random_key(),
        escrow=primitives.random_key(),
    )
    data = [primitives.recipient_of(keys.identity), primitives.recipient_of(keys.escrow)]
    data += [one for one in recipients if one not in data]
    if len(data) > _DATA_RECIPIENTS_MAX:
        raise ConfigurationError(
            "recipients", f"at most {_DATA_RECIPIENTS_MAX - 2} more recipients"
        )
    _prepare_key_folders(request)
    registry = _registry(config, keys, data, now)
    _write_registry(request.places, keys, registry)
    card = _write_keys(request, keys, data)
    write_once(request.places.configuration, compose_configuration(config))  # the commit point
    return Initialised(
        stream=config.stream,
        repository=request.places.repository,
        keys=request.places.keys,
        card=card,
        todo=_todo(request),
    )


def _todo(request: InitRequest) -> tuple[str, ...]:
    words = [] if request.human else ["human"]
    words += ["remote", "escrow", "timer"]
    return (*words, *(() if request.put_only else ("identity-on-this-machine",)))


def _configuration(request: InitRequest) -> StreamConfig:
    compartment = request.compartment or request.stream
    if not (is_stream_id(request.stream) and is_stream_id(compartment)):
        raise ConfigurationError(
            "stream",
            "a stream or compartment id is lower-case letters, digits and '-', at most 63",
            hint="for example: durarepo init --stream notes --root ~/notes",
        )
    if request.stream == RESERVED:
        raise ConfigurationError(
            "stream",
            f"no stream can be called '{RESERVED}': that is the folder of restores",
            hint="choose another --stream",
        )
    if not request.roots:
        raise ConfigurationError(
            "no-root", "a stream needs a root", hint="name the folder to keep: --root FOLDER"
        )
    if request.put_only != (request.out is not None):
        raise ConfigurationError(
            "put-only",
            "--put-only and --out belong together",
            hint="name the folder that takes identity, owner key and card: --put-only --out FOLDER",
        )
    for root in request.roots:
        _check_root(root)
    roots = sorted({real_root(root) for root in request.roots})
    check_roots(roots)
    return StreamConfig(
        stream=request.stream,
        compartment=compartment,
        never_publish=request.never_publish,
        human=HumanConfig(name=request.human, channels=(request.human,)) if request.human else None,
        roots=tuple(RootConfig(path=root) for root in roots),
    )


def _check_root(root: bytes) -> None:
    try:
        os.scandir(root).close()
    except NotADirectoryError as error:
        raise SourceError(
            "root-not-directory",
            f"root {shown(root)} is not a folder",
            hint="name the folder that holds it",
        ) from error
    except OSError as error:
        raise SourceError(
            "root-missing" if isinstance(error, FileNotFoundError) else "root-unreadable",
            f"root {shown(root)} cannot be read: {error.strerror}",
            hint="name a folder that exists and that you may read",
        ) from error


def _check_new(request: InitRequest) -> None:
    places = request.places
    roots = [os.path.realpath(root) for root in request.roots]
    check_outside(places.keys, roots, what="the keys folder")
    if request.out is not None:
        check_outside(
            request.out,
            roots,
            what="the folder for the owner's keys",
            hint="choose another --out, outside the roots",
        )
    if os.path.lexists(places.configuration):
        raise ConfigurationError(
            "exists",
            f"stream '{request.stream}' exists in {shown(places.repository)}",
            hint="take a snapshot of it with durarepo snapshot, or choose another --stream",
        )
    for folder, what in ((places.keys, "keys"), (places.objects, "objects")):
        if os.path.isdir(folder) and os.listdir(folder):
            raise ConfigurationError(
                "exists",
                f"there are {what} of a stream '{request.stream}' in {shown(folder)} already",
                hint="choose another --stream; move that folder away only if an interrupted init "
                "left it: what a living stream keeps cannot be read without its keys",
            )


def _prepare_key_folders(request: InitRequest) -> None:
    """Refuse, before anything is made, folders that the keys cannot be written to."""
    name = request.stream.encode()
    owned = (keyring.IDENTITY, keyring.OWNER, name + b".card", name + b".keys")
    for folder in (request.places.keys, request.out):
        if folder is None:
            continue
        prepare_secret_folder(folder)
        for taken in (os.path.join(folder, one) for one in owned):
            if os.path.lexists(taken):
                raise ConfigurationError(
                    "exists",
                    f"{shown(taken)} is there already",
                    hint="name another folder; move it away only if it is of no living stream, "
                    "which cannot be read without its keys",
                )


def _registry(config: StreamConfig, keys: _NewKeys, data: list[bytes], now: int) -> Registry:
    place = Compartment(stream=config.stream, epoch=1, compartment=config.compartment)
    epoch = Epoch(
        number=1,
        first_sequence=1,
        previous=ZERO_DIGEST,
        signers=(
            Signer(
                public=primitives.signer_public(keys.signing), roles=Role.MANIFEST | Role.EVIDENCE
            ),
        ),
        data_recipients=tuple(data),
        audit_recipients=(),
        stanza_count=_STANZAS,
        naming_key=seal_box(keys.naming, data, kind=Seal.NAMING_KEY, place=place, count=_STANZAS),
        slot_key=None,
        revocations=(),
    )
    record = StreamRecord(
        stream=config.stream,
        compartment=config.compartment,
        never_publish=config.never_publish,
        epochs=(epoch,),
        floor=0,
        retention=Retention(days=RETENTION_DAYS, keep_weekly=0, keep_monthly=0),
        foreign_drill=False,
        shrink_lifted=None,
    )
    return Registry(
        version=1,
        issued=now,
        expires=now + REGISTRY_TTL_MAX_SECONDS,
        owner=primitives.signer_public(keys.owner),
        streams=(record,),
    )


def _write_registry(places: Places, keys: _NewKeys, registry: Registry) -> None:
    document = sign_document(REGISTRY_TYPE, encode_registry(registry), keys.owner)
    size = fitting_class(len(document) + _REGISTRY_ROOM, most=REGISTRY_MAX_BYTES)
    data = seal_registry(keys.locator, document, size=size)
    for folder in (places.repository, places.state):
        make_folder(folder)
    with LocalDir(places.objects, create=True) as store:
        store.put_new(registry_slot(Secret(keys.locator), registry.version, 0), data)
    StateFiles(places.state).raise_high_water(
        HighWater(
            epoch=1,
            sequence=Sequence(0),
            head_digest=ZERO_DIGEST,
            registry_version=registry.version,
            clock_seconds=0,
        )
    )


def _write_keys(request: InitRequest, keys: _NewKeys, data: list[bytes]) -> bytes:
    folder = request.places.keys
    owner_folder = request.out if request.out is not None else folder
    owner_public = primitives.signer_public(keys.owner)
    here: dict[bytes, str] = {
        keyring.SIGNING: encode_key("signing", keys.signing),
        keyring.NAMING: encode_key("naming", keys.naming),
        keyring.LOCATOR: encode_key("locator", keys.locator),
        keyring.OWNER_PUBLIC: encode_key("owner-public", owner_public),
    }
    there: dict[bytes, str] = {
        keyring.IDENTITY: encode_key("identity", keys.identity),
        keyring.OWNER: encode_key("owner", keys.owner),
    }
    name = request.stream.encode()
    _write_texts(folder, here)
    _write_texts(owner_folder, there)
    _write_new(os.path.join(folder, keyring.RECIPIENTS), _recipients_text(data))
    card = os.path.join(owner_folder, name + b".card")
    _write_new(card, _card_text(request.stream, keys, owner_public))
    _write_new(os.path.join(owner_folder, name + b".keys"), _keys_text(request, keys))
    return card


def _write_texts(folder: bytes, texts: dict[bytes, str]) -> None:
    for name, text in texts.items():
        _write_new(os.path.join(folder, name), text.encode() + b"\n")


def _write_new(path: bytes, data: bytes) -> None:
    try:
        write_secret_new(path, data)
    except KeyMaterialError as error:
        if error.code != "keys.exists":
            raise
        raise ConfigurationError("exists", error.message, hint=error.hint) from error


def _recipients_text(data: list[bytes]) -> bytes:
    labels = ("owner", "escrow", *(f"other-{n}" for n in range(1, len(data))))
    lines = [
        f"data {label} {encode_key('recipient', one)}"
        for label, one in zip(labels, data, strict=False)
    ]
    return "\n".join((*lines, "")).encode()


def _card_text(stream: str, keys: _NewKeys, owner_public: bytes) -> bytes:
    card = Card(
        owner_digest=primitives.sha256(owner_public),
        identity=keys.escrow,
        locator=keys.locator,
        registry_version=1,
        streams=(CardStream(stream=stream, anchor=(1, 0, ZERO_DIGEST), head=(0, ZERO_DIGEST)),),
        remotes=(),
    )
    return armour(card=True, content=b"\x00" + encode_card(card))


def _keys_text(request: InitRequest, keys: _NewKeys) -> bytes:
    compartment = request.compartment or request.stream
    place = Compartment(stream=request.stream, epoch=0, compartment=compartment)
    box = seal_box(
        encode_keys_file(keys.signing, [(1, keys.naming)]),
        [primitives.recipient_of(keys.escrow)],
        kind=Seal.KEYS_FILE,
        place=place,
        count=_STANZAS,
    )
    stream, name = request.stream.encode(), compartment.encode()
    head = bytes((len(stream),)) + stream + bytes((len(name),)) + name
    return armour(card=False, content=head + box)
