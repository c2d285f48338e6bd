"""Every number of the format and of its obligations, each with its unit and its clause.

Each number stands once in spec/format.md (section 12) and once here; a test compares them.
"""

KIB = 1024
MIB = 1024 * KIB

# Format version: the byte that begins every object is the whole suite (law 10).
FORMAT_VERSION = 1

# Sizes of stored objects, in bytes (format 4).
SIZE_CLASSES = (
    32 * KIB,
    128 * KIB,
    384 * KIB,
    1 * MIB,
    2 * MIB + 512 * KIB,
    6 * MIB,
    14 * MIB,
    32 * MIB,
)
PACK_MAX_BYTES = SIZE_CLASSES[-1]
ENVELOPE_MAX_BYTES = 6 * MIB
REGISTRY_MAX_BYTES = 1 * MIB

# Sealing (format 3.3).
KEY_BYTES = 32
STANZA_BYTES = 1168
STANZA_COUNTS = (4, 8)
NONCE_BYTES = 12
TAG_BYTES = 16
TRAILER_BYTES = 36
RECIPIENT_BYTES = 1216
SIGNER_PUBLIC_BYTES = 32 + 1952
ED25519_SIGNATURE_BYTES = 64
MLDSA_SIGNATURE_BYTES = 3309

# Bounds checked before memory is allocated (law 8), in bytes unless said otherwise.
FILE_MAX_BYTES = (1 << 53) - 1
CHUNK_MAX_BYTES = 8 * MIB
FRAME_MAX_BYTES = 8 * MIB
INDEX_MAX_BYTES = 4 * MIB
NESTED_MAX_BYTES = 8 * MIB
PATH_MAX_BYTES = 4096
NAME_MAX_BYTES = 255
XATTR_INLINE_BYTES = 4096
XATTRS_MAX_COUNT = 1024
LEDGER_INLINE_BYTES = 64 * KIB
PINS_MAX_COUNT = 65_536
PINS_WARN_COUNT = 16_384
CBOR_MAX_DEPTH = 16
FRAMES_MAX_COUNT = 65_536
LIST_MAX_DEPTH = 3
TREE_MAX_DEPTH = PATH_MAX_BYTES // 2 + 1
"""As deep as the longest path leads, its root included."""

# Trees (format 6): where a large directory is split.
TREE_SPLIT_BYTES = 1 * MIB
TREE_LEAF_MAX_ENTRIES = 4096
TREE_LEAF_CUT_BITS = 10

# Times, in seconds.
MANIFEST_TTL_SECONDS = 24 * 3600  # AICEP 10.5.3.1
ISSUED_AHEAD_SECONDS = 600
REGISTRY_TTL_MAX_SECONDS = 400 * 24 * 3600
REGISTRY_WARN_SECONDS = 60 * 24 * 3600
TIME_MIN_SECONDS = -(1 << 62)
TIME_MAX_SECONDS = (1 << 62) - 1
QUIET_SECONDS = 2
"""A file is believed unchanged only if its times are this much older than the run that read it."""

# Chain (format 7).
MILESTONE_EVERY = 64
SLOT_ATTEMPTS = 8
LIVE_MANIFESTS_MIN = 3
RETENTION_DAYS = 14  # AICEP 10.5.4
VERIFY_DAYS = 14

# How a writer fills frames and packs; a reader never needs these (decision 0003).
FRAME_TARGET_BYTES = 512 * KIB
WHOLE_FILE_MAX_BYTES = 64 * KIB
"""Files up to this size are one chunk."""
READ_WINDOW_BYTES = 8 * MIB
PADDING_SHARE = 0.05
PADDING_BYTES = 48 * KIB

# Rewriting: what a run seals anew of what it has already (format 5.5, decision 0006).
REWRITE_LEAST_BYTES = 64 * MIB
REWRITE_SHARE = 0.1
"""A run rewrites this share of what lives, or the bytes above if they are more."""
REWRITE_LIVE_SHARE = 0.5
"""A pack of which less lives is rewritten."""
SMALL_PACK_BYTES = 6 * MIB
"""Packs below this size are small."""
SMALL_PACKS_MAX = 32
"""So many small packs of a class a manifest is to pin at most."""
SMALL_PACKS_SPARE = 8
"""Room left for what the run itself adds to a class, so rewriting begins earlier by this."""
WEIGH_SHARE = 1 / 16
"""What lives is looked up anew once this share of the pinned bytes was added or taken away."""
WEIGH_MANIFESTS = 16
"""At most this many manifests after it was last looked up, if anything was added since."""

READ_TRIES = 3
"""How often a file that changes while it is read is tried (spec/cli.md, omissions)."""

STORE_MIN_OBJECT_BYTES = 1 * MIB
"""A per-object limit below this is refused."""

# Remotes and the mirror (spec/mirror.md 5). Times in seconds.
REMOTE_TRIES = 6
REMOTE_TOTAL_SECONDS = 600
REMOTE_WAIT_SECONDS = 0.5
REMOTE_WAIT_MAX_SECONDS = 30
REMOTE_STALL_SECONDS = 30
REMOTE_EXCHANGE_SECONDS = 60
REMOTE_LEAST_RATE_BYTES = 16 * KIB
"""Bytes a second below which an exchange is broken off."""
MIRROR_HEAD_SECONDS = 15
MIRROR_IDLE_SECONDS = 30
MIRROR_BODY_STALL_SECONDS = 30
MIRROR_DRAIN_SECONDS = 60
MIRROR_UPLOADS = 32
MIRROR_CONNECTIONS = 512
MIRROR_PAGE_NAMES = 1000
