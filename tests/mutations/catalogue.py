"""The mutations: each takes away one protection that a row of spec/conformance.md asks for.

Data only. Texts are exact; a change of the program that moves one has to move it here too.
"""

from tests.mutations.mutation import Mutation

_VECTOR = "tests/vectors/test_vectors.py::test_durarepo_answers_as_the_vector_says"
_UNIT = "tests/unit"
_ROWS = "tests/conformance/test_rows.py"
_REWRITING = "tests/unit/operations/test_snapshot_rewriting.py"
_FAULTS = "tests/faults/test_faults.py"
_POWER = (
    "tests/crash/test_power.py::test_a_power_failure_at_any_event_loses_nothing_that_was_committed"
)

_ROTATION = f"{_UNIT}/operations/test_rotation.py"
_EXCLUSION = "tests/unit/operations/test_snapshot_exclusion.py"
_REGISTRY = f"{_UNIT}/operations/test_registry.py"
_REVOCATION = f"{_UNIT}/operations/test_revocation.py"

MUTATIONS = (
    Mutation(
        id="secret-shows-itself",
        rows=("A2e",),
        breaks="a secret is printed by whoever prints what holds it",
        file="durarepo/core/secret.py",
        old="    def __repr__(self) -> str:\n        return _REDACTED",
        new="    def __repr__(self) -> str:\n        return repr(self.__value)",
        tests=(f"{_UNIT}/local/test_secret.py::test_secret_does_not_show_in_any_text",),
    ),
    Mutation(
        id="no-run-is-done",
        rows=("A3a",),
        breaks="a second automatic run of a day makes a second manifest",
        file="durarepo/operations/snapshot.py",
        old="if run.complete and run.type == SnapshotType.AUTO.word and same_day and fresh:",
        new="if run.complete and run.type == '' and same_day and fresh:",
        tests=(f"{_ROWS}::test_the_second_automatic_run_of_a_day_makes_nothing",),
    ),
    Mutation(
        id="life-of-25-hours",
        rows=("A3b",),
        breaks="a manifest may live 25 hours",
        file="durarepo/policy/freshness.py",
        old="if expires != issued + MANIFEST_TTL_SECONDS:",
        new="if not issued < expires <= issued + 25 * 3600:",
        tests=(
            f"{_UNIT}/policy/test_freshness.py::test_a_manifest_lives_24_hours_exactly",
            f"{_VECTOR}[manifest-lives-a-second-longer]",
        ),
    ),
    Mutation(
        id="any-setting",
        rows=("A3b",),
        breaks="a setting that does not exist is passed over",
        file="durarepo/local/configuration.py",
        old="            if key not in known:",
        new="            if not key:",
        tests=(f"{_ROWS}::test_no_setting_lengthens_the_life_of_a_manifest",),
    ),
    Mutation(
        id="no-object-limit",
        rows=("A3c",),
        breaks="packs grow to the largest class whatever the store takes",
        file="durarepo/repository/writer.py",
        old="self._classes = [size for size in SIZE_CLASSES if size <= terms.object_limit]",
        new="self._classes = list(SIZE_CLASSES)",
        tests=(f"{_ROWS}::test_no_object_is_longer_than_the_store_takes",),
    ),
    Mutation(
        id="no-padding",
        rows=("A3c",),
        breaks="envelopes are as long as what they hold",
        file="durarepo/repository/publisher.py",
        old="size = fitting_class(envelope_overhead(header) + len(document), "
        "most=ENVELOPE_MAX_BYTES)",
        new="size = envelope_overhead(header) + len(document)",
        tests=(f"{_ROWS}::test_no_object_is_longer_than_the_store_takes",),
    ),
    Mutation(
        id="nothing-compressed",
        rows=("A3d",),
        breaks="frames are stored as they are",
        file="durarepo/sealing.py",
        old="return (DEFLATED, deflated) if len(deflated) < len(plaintext) else",
        new="return (DEFLATED, deflated) if len(deflated) < 0 else",
        tests=(f"{_ROWS}::test_what_compresses_is_stored_smaller",),
    ),
    Mutation(
        id="first-recipient-only",
        rows=("A3d",),
        breaks="only the first recipient can open a pack",
        file="durarepo/sealing.py",
        old="for to in (*recipients, *spares)]",
        new="for to in (recipients[:1] * len(recipients) + spares)]",
        tests=(f"{_UNIT}/test_sealing.py::test_a_pack_opens_for_each_of_its_recipients",),
    ),
    Mutation(
        id="names-without-a-key",
        rows=("A3e",),
        breaks="chunks are named by a hash that anybody can calculate",
        file="durarepo/sealing.py",
        old='primitives.derive_subkey(naming_key, "chunk-id")',
        new='primitives.derive_subkey(naming_key[:0], "chunk-id")',
        tests=(f"{_ROWS}::test_no_name_tells_what_the_content_is",),
    ),
    Mutation(
        id="nothing-known-twice",
        rows=("A3e",),
        breaks="content that is stored already is stored again",
        file="durarepo/repository/chunks.py",
        old="        owner = self._known(chunk)\n",
        new="        owner = None\n",
        tests=(f"{_ROWS}::test_the_same_content_is_stored_once",),
    ),
    Mutation(
        id="rewriting-drops-the-unread",
        rows=("A3g",),
        breaks="an unchanged file that cannot be read again is dropped when its pack is rewritten",
        file="durarepo/repository/treekeeper.py",
        old="return _Item(opened.spare[name]) if name in opened.spare else None",
        new="return None",
        tests=(
            f"{_REWRITING}::test_an_unchanged_file_that_cannot_be_read_again_keeps_its_entry_and_packs",
        ),
    ),
    Mutation(
        id="rewriting-counts-what-died",
        rows=("A3g",),
        breaks="packs that are to be rewritten count as before, and the repository only grows",
        file="durarepo/repository/chunks.py",
        old="return pack in self.packs and pack not in self.rewriting",
        new="return pack in self.packs",
        tests=(
            f"{_REWRITING}::test_after_enough_runs_a_new_recipient_alone_restores_the_head",
            f"{_REWRITING}::test_many_small_packs_become_few",
        ),
    ),
    Mutation(
        id="rewriting-forgets-a-partial-run",
        rows=("A3g",),
        breaks="what a partial manifest stored looks dead and is stored again",
        file="durarepo/repository/rewriting.py",
        old="if pin.name in names}",
        new="}",
        tests=(f"{_REWRITING}::test_what_a_partial_manifest_stored_is_not_taken_for_dead",),
    ),
    Mutation(
        id="catalogue-not-asked",
        rows=("A3g",),
        breaks="content of earlier days is stored again when its file is read again",
        file="durarepo/repository/chunks.py",
        old="if found is not None and self._counts(found[0]):",
        new="if found is not None and found[0] in ():",
        tests=(
            f"{_ROWS}::test_a_touched_file_is_read_and_not_stored_again",
            f"{_UNIT}/operations/test_snapshot_unchanged.py"
            "::test_renaming_a_folder_stores_no_content_again",
        ),
    ),
    Mutation(
        id="everything-read-again",
        rows=("A3g",),
        breaks="a changed folder has all its files read again",
        file="durarepo/repository/listing.py",
        old="if before is None or before.record != record:",
        new="if before is None or before.record:",
        tests=(
            f"{_UNIT}/operations/test_snapshot_unchanged.py"
            "::test_one_changed_file_opens_it_alone_and_encodes_its_parents",
        ),
    ),
    Mutation(
        id="index-not-compared",
        rows=("A3f",),
        breaks="an index is opened without a look at what the manifest pins",
        file="durarepo/sealing.py",
        old="if not primitives.same(primitives.sha256(sealed), digest):",
        new="if not primitives.same(primitives.sha256(sealed), digest) and not sealed:",
        tests=(
            f"{_ROWS}::test_two_valid_packs_in_each_others_place_are_refused",
            f"{_VECTOR}[index-digest-differs]",
        ),
    ),
    Mutation(
        id="chunk-not-named-again",
        rows=("A3f",),
        breaks="a decrypted chunk is taken for what the index calls it",
        file="durarepo/sealing.py",
        old="if namer.name_of(_KINDS[index.kinds[number]], chunk) != index.ids[number]:",
        new="if not namer.name_of(_KINDS[index.kinds[number]], chunk):",
        tests=(
            f"{_UNIT}/repository/test_reader.py"
            "::test_a_chunk_whose_id_the_index_invents_is_refused",
            f"{_UNIT}/test_sealing.py::test_a_chunk_s_id_is_derived_again",
        ),
    ),
    Mutation(
        id="keys-anywhere",
        rows=("A5a",),
        breaks="keys may lie in what is backed up",
        file="durarepo/local/placement.py",
        old="if _can_reach(os.path.abspath(root), os.path.abspath(each), mounts):",
        new="if _can_reach(os.path.abspath(root), os.path.abspath(each), mounts) is None:",
        tests=(f"{_UNIT}/local/test_placement.py::test_keys_that_a_root_reaches_are_refused",),
    ),
    Mutation(
        id="group-may-read-keys",
        rows=("A5b",),
        breaks="a key file that its group can read is taken",
        file="durarepo/local/secretfiles.py",
        old="_OTHERS = stat.S_IRWXG | stat.S_IRWXO",
        new="_OTHERS = stat.S_IRWXO",
        tests=(
            f"{_UNIT}/local/test_secretfiles.py"
            "::test_key_file_that_others_can_reach_is_refused_by_its_reason",
        ),
    ),
    Mutation(
        id="group-may-swap-keys",
        rows=("A5b",),
        breaks="a folder that its group can write may hold keys",
        file="durarepo/local/secretfiles.py",
        old="_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH",
        new="_OTHERS_WRITE = stat.S_IWOTH",
        tests=(
            f"{_UNIT}/local/test_secretfiles.py"
            "::test_key_file_that_others_can_reach_is_refused_by_its_reason",
        ),
    ),
    Mutation(
        id="any-native-file",
        rows=("A5d",),
        breaks="the crypto package's compiled part may be any file",
        file="durarepo/local/cryptopin.py",
        old="if digest not in NATIVE_SHA256.values():",
        new="if not digest:",
        tests=(
            f"{_UNIT}/local/test_cryptopin.py::test_one_altered_byte_in_the_native_file_is_refused",
        ),
    ),
    Mutation(
        id="any-python-file",
        rows=("A5d",),
        breaks="the crypto package's Python files may be anything",
        file="durarepo/local/cryptopin.py",
        old="if sources != SOURCES_SHA256:",
        new="if not sources:",
        tests=(f"{_UNIT}/local/test_cryptopin.py::test_a_python_file_too_many_is_refused",),
    ),
    Mutation(
        id="doubles-in-the-wheel",
        rows=("A5e",),
        breaks="what users install holds the doubles of the tests",
        file="pyproject.toml",
        old='packages = ["durarepo", "cli/durarepo_cli"]',
        new='packages = ["durarepo", "cli/durarepo_cli", "tests/doubles"]',
        tests=("tests/architecture/test_wheel.py::test_the_wheel_holds_exactly_the_two_packages",),
    ),
    Mutation(
        id="switch-for-another-crypto",
        rows=("A5e",),
        breaks="a variable of the environment changes how keys are made",
        file="durarepo/crypto/primitives.py",
        old="    return secrets.token_bytes(KEY_BYTES)\n",
        new='    if "DURAREPO_TEST_KEYS" in os.environ:\n        return bytes(KEY_BYTES)\n'
        "    return secrets.token_bytes(KEY_BYTES)\n",
        tests=(
            "tests/architecture/test_crypto_doors.py"
            "::test_no_variable_is_read_that_is_not_a_place_or_a_manner",
        ),
    ),
    Mutation(
        id="age-asked-late",
        rows=("A6a",),
        breaks="packs are opened before the manifest's age was looked at",
        file="durarepo/repository/livetime.py",
        old="        self._check_restorable(manifest)\n        self._manifest = manifest\n",
        new="        self._manifest = manifest\n",
        tests=(f"{_ROWS}::test_no_pack_is_touched_before_the_whole_chain_was_checked",),
    ),
    Mutation(
        id="revocation-not-asked",
        rows=("A6b",),
        breaks="a revoked signer goes on signing",
        file="durarepo/ingest.py",
        old="        _check_revocation(statement, record, digests)  # 4.17\n",
        new="",
        tests=(f"{_VECTOR}[chain-behind-revocation]",),
    ),
    Mutation(
        id="any-role",
        rows=("A6b",),
        breaks="who may sign evidence may sign manifests",
        file="durarepo/ingest.py",
        old="if Role.MANIFEST not in signer.roles:  # 4.16",
        new="if not signer.roles:  # 4.16",
        tests=(f"{_VECTOR}[manifest-by-evidence-signer]",),
    ),
    Mutation(
        id="one-signature",
        rows=("A6c",),
        breaks="the first of two signatures is enough",
        file="durarepo/crypto/primitives.py",
        old="        mldsa.MLDSA65PublicKey.from_public_bytes(public[_ED25519_BYTES:]).verify(\n"
        "            pair[1], message, context\n"
        "        )\n",
        new="",
        tests=(
            f"{_UNIT}/crypto/test_primitives.py::test_both_signatures_have_to_be_good",
            f"{_VECTOR}[manifest-mldsa-wrong]",
        ),
    ),
    Mutation(
        id="type-not-compared",
        rows=("A6c",),
        breaks="a document of another type passes for a manifest",
        file="durarepo/ingest.py",
        old="    if document.type != expected:\n",
        new="    if not document.type:\n",
        tests=(f"{_VECTOR}[manifest-of-type-evidence]",),
    ),
    Mutation(
        id="no-high-water",
        rows=("A6d",),
        breaks="an older head, or another one, passes for what has been seen",
        file="durarepo/ingest.py",
        old="    _check_high_water(head, digests, high)  # 4.22, 4.23\n",
        new="",
        tests=(f"{_VECTOR}[chain-rolled-back]", f"{_VECTOR}[chain-other-head-seen]"),
    ),
    Mutation(
        id="links-not-followed",
        rows=("A6d",),
        breaks="a manifest need not name the one before it",
        file="durarepo/ingest.py",
        old="    broken = digests[number - 1] != statement.previous\n",
        new="    broken = False\n",
        tests=(f"{_VECTOR}[manifest-previous-differs]",),
    ),
    Mutation(
        id="frame-not-compared",
        rows=("A6e", "A3f"),
        breaks="a frame is decrypted whatever its stored bytes are",
        file="durarepo/sealing.py",
        old="if not primitives.same(primitives.sha256(ciphertext), info.digest):",
        new="if not ciphertext:",
        tests=(
            f"{_UNIT}/repository/test_reader.py"
            "::test_a_flipped_bit_in_a_frame_is_refused_before_it_is_decrypted",
        ),
    ),
    Mutation(
        id="file-not-compared",
        rows=("A6f",),
        breaks="a file put together in the wrong order is restored",
        file="durarepo/repository/pieces.py",
        old="    if digest.digest() != entry.sha256:\n",
        new="    if not digest.digest():\n",
        tests=(
            f"{_UNIT}/operations/test_checkout.py"
            "::test_a_file_whose_chunks_are_in_the_wrong_order_never_appears",
        ),
    ),
    Mutation(
        id="expired-restored",
        rows=("A6h",),
        breaks="a manifest is restored for an hour after it expired",
        file="durarepo/policy/freshness.py",
        old="    if now >= expires:\n",
        new="    if now >= expires + 3600:\n",
        tests=(
            f"{_VECTOR}[manifest-expired]",
            f"{_UNIT}/operations/test_checkout.py"
            "::test_an_expired_manifest_is_refused_with_the_archival_command",
        ),
    ),
    Mutation(
        id="time-asked-once",
        rows=("A6h",),
        breaks="what expires or is revoked during a restore is restored all the same",
        file="durarepo/repository/livetime.py",
        old="        if self._manifest is not None:\n"
        "            self._check_restorable(self._manifest)\n",
        new="",
        tests=(
            f"{_UNIT}/operations/test_checkout.py"
            "::test_nothing_is_decrypted_once_the_manifest_has_expired_after_ingest",
            f"{_UNIT}/operations/test_checkout.py"
            "::test_nothing_appears_once_the_manifest_has_expired_during_the_restore",
        ),
    ),
    Mutation(
        id="clock-believed",
        rows=("A6h",),
        breaks="a clock that was set back makes old manifests young again",
        file="durarepo/policy/freshness.py",
        old="    if now < high_water:\n",
        new="    if now < 0:\n",
        tests=(
            f"{_UNIT}/policy/test_freshness.py::test_a_clock_may_stand_still_but_not_run_back",
            f"{_UNIT}/operations/test_checkout.py"
            "::test_a_clock_behind_its_high_water_stops_the_restore",
        ),
    ),
    Mutation(
        id="nobody-asked",
        rows=("A6i",),
        breaks="an expired manifest is restored without a human",
        file="durarepo/operations/archival.py",
        old="    confirm(found.aside)\n",
        new="",
        tests=(
            f"{_UNIT}/operations/test_checkout_archival.py"
            "::test_nothing_happens_while_nobody_agrees",
        ),
    ),
    Mutation(
        id="a-pipe-answers",
        rows=("A6i",),
        breaks="answers are taken from what is no terminal",
        file="cli/durarepo_cli/confirm.py",
        old="        if stream is None or not _is_terminal(stream.fileno()):\n",
        new="        if stream is None:\n",
        tests=("tests/cli/test_confirm.py::test_answers_from_a_pipe_are_not_a_human",),
    ),
    Mutation(
        id="archival-within-reach",
        rows=("A6j",),
        breaks="an operation that runs by itself can reach the archival one",
        file="durarepo/operations/verify.py",
        old="from durarepo.repository.chain import Chain\n",
        new="from durarepo.operations.archival import AUDIT_KIND  # noqa: F401\n"
        "from durarepo.repository.chain import Chain\n",
        tests=("tests/architecture/test_floors.py::test_the_contracts_hold",),
    ),
    Mutation(
        id="set-not-compared",
        rows=("E2",),
        breaks="files may be added to what was signed",
        file="durarepo/repository/restorer.py",
        old="if component.kind == FILES_KIND and component.integrity != self._roots.digest():",
        new="if component.kind == FILES_KIND and not component.integrity:",
        tests=(
            f"{_UNIT}/operations/test_checkout.py"
            "::test_a_file_that_was_added_after_signing_the_set_is_refused",
        ),
    ),
    Mutation(
        id="component-index-not-compared",
        rows=("E2",),
        breaks="the index of components may be of others",
        file="durarepo/ingest.py",
        old="    if component_index(nested.components) != stated_index:\n",
        new="    if not stated_index:\n",
        tests=(f"{_VECTOR}[manifest-component-index-differs]",),
    ),
    Mutation(
        id="setuid-kept",
        rows=("E18",),
        breaks="a restored program keeps its set-id bits",
        file="durarepo/repository/scratch_metadata.py",
        old="allowed = DIRECTORY_MODE if entry.type is FileType.DIRECTORY else FILE_MODE",
        new="allowed = DIRECTORY_MODE if entry.type is FileType.DIRECTORY else 0o7777",
        tests=(
            f"{_UNIT}/operations/test_checkout.py::test_setuid_is_dropped_and_the_loss_is_told",
        ),
    ),
    Mutation(
        id="mode-not-restored",
        rows=("E18",),
        breaks="files come back with the mode of the scratch folder",
        file="durarepo/repository/scratch_metadata.py",
        old="            os.fchmod(fd, mode)\n",
        new="            pass\n",
        tests=(f"{_UNIT}/repository/test_scratch.py::test_the_mode_does_not_depend_on_the_umask",),
    ),
    Mutation(
        id="dots-are-names",
        rows=("E20",),
        breaks="a listing may name the folder above",
        file="durarepo/format/tree.py",
        old='        or name in (b".", b"..")\n    ):\n',
        new="    ):\n",
        tests=(
            f"{_VECTOR}[tree-name-dot-dot]",
            f"{_UNIT}/format/test_tree.py::test_a_name_that_cannot_stand_in_a_directory_is_refused",
        ),
    ),
    Mutation(
        id="roots-climb",
        rows=("E20",),
        breaks="a root may lie outside the folder that is restored into",
        file="durarepo/format/tree.py",
        old='        part not in (b"", b".", b"..") and len(part) <= NAME_MAX_BYTES\n',
        new="        len(part) <= NAME_MAX_BYTES\n",
        tests=(
            f"{_VECTOR}[manifest-root-climbs]",
            f"{_UNIT}/format/test_tree.py::test_any_other_path_may_not",
        ),
    ),
    Mutation(
        id="links-followed-for-files",
        rows=("E21",),
        breaks="a file that became a link is read through it",
        file="durarepo/source/reading.py",
        old="_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW |",
        new="_OPEN_FILE = os.O_RDONLY |",
        tests=(
            f"{_UNIT}/source/test_reading.py"
            "::test_what_is_no_longer_a_regular_file_is_refused_unread",
        ),
    ),
    Mutation(
        id="links-followed-for-folders",
        rows=("E21",),
        breaks="a folder that became a link is walked through it",
        file="durarepo/source/opening.py",
        old="_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW |",
        new="_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY |",
        tests=(
            f"{_UNIT}/source/test_walk.py::test_a_directory_swapped_after_listing_is_not_followed",
        ),
    ),
    Mutation(
        id="change-not-seen",
        rows=("E21",),
        breaks="a change that puts size and time back is not seen while reading",
        file="durarepo/source/reading.py",
        old="        and before.st_ctime_ns == after.st_ctime_ns\n",
        new="",
        tests=(
            f"{_UNIT}/source/test_reading.py"
            "::test_a_change_that_restores_size_and_mtime_is_still_seen",
        ),
    ),
    Mutation(
        id="seals-of-any-stream",
        rows=("E22",),
        breaks="what was sealed for one stream opens in another",
        file="durarepo/format/layout.py",
        old="            bytes((kind, len(stream))),\n            stream,\n",
        new="            bytes((kind, 0)),\n",
        tests=(f"{_UNIT}/test_sealing.py::test_a_box_opens_for_its_recipients_in_its_place_only",),
    ),
    Mutation(
        id="others-may-read",
        rows=("E22",),
        breaks="stored files are open to everybody on the machine",
        file="durarepo/store/atomic.py",
        old='descriptor = os.open(b".", flags, 0o600, dir_fd=self._folder)',
        new='descriptor = os.open(b".", flags, 0o644, dir_fd=self._folder)',
        tests=(f"{_UNIT}/store/test_localdir.py::test_objects_and_folders_are_private",),
    ),
    Mutation(
        id="frames-in-any-order",
        rows=("E23",),
        breaks="a frame opens wherever in its pack it lies",
        file="durarepo/sealing.py",
        old='b"frame" + ordinal.to_bytes(4) + digest',
        new='b"frame" + bytes(4) + digest',
        tests=(f"{_UNIT}/test_sealing.py::test_a_frame_opens_in_its_own_place_only",),
    ),
    Mutation(
        id="listings-among-data",
        rows=("E30",),
        breaks="a listing reads packs full of data",
        file="durarepo/repository/writer.py",
        old="lane = self._data if kind is ChunkKind.DATA else self._trees",
        new="lane = self._data if kind is not None else self._trees",
        tests=(f"{_ROWS}::test_a_listing_reads_no_pack_of_data",),
    ),
    Mutation(
        id="log-opens-all",
        rows=("E30",),
        breaks="the list of manifests opens each of them",
        file="durarepo/operations/log.py",
        old="        if sequence not in known and can_open:\n",
        new="        if can_open:\n",
        tests=(
            f"{_UNIT}/operations/test_reading.py"
            "::test_log_opens_no_envelope_when_the_catalogue_knows",
        ),
    ),
    Mutation(
        id="any-depth",
        rows=("E35",),
        breaks="values are decoded however deep they are",
        file="durarepo/format/canonical.py",
        old="    if depth >= CBOR_MAX_DEPTH:\n",
        new="    if depth < 0:\n",
        tests=(f"{_VECTOR}[cbor-depth-100000]", f"{_VECTOR}[cbor-depth-17-arrays]"),
    ),
    Mutation(
        id="log-of-database-ignored",
        rows=("P1",),
        breaks="a database is copied without what is only in its log",
        file="durarepo/source/sqlitestate.py",
        old="        return (_beside_writers, _joined, _from_a_copy)\n",
        new="        return (_at_rest,)\n",
        tests=(
            f"{_UNIT}/operations/test_snapshot_databases.py"
            "::test_a_commit_that_is_only_in_the_log_is_kept",
        ),
    ),
    Mutation(
        id="name-before-bytes",
        rows=("P16",),
        breaks="an object gets its name before its bytes are on disk",
        file="durarepo/store/atomic.py",
        old="            os.fsync(self._descriptor)\n            try:\n",
        new="            try:\n",
        tests=("tests/crash/test_atomic.py::test_the_order_of_a_write_is_the_guarantee",),
    ),
    Mutation(
        id="name-not-durable",
        rows=("P16",),
        breaks="an object is reported before its name is on disk",
        file="durarepo/store/atomic.py",
        old="            self.discard_temporary()\n            os.fsync(folder)\n",
        new="            self.discard_temporary()\n",
        tests=("tests/crash/test_atomic.py::test_the_order_of_a_write_is_the_guarantee",),
    ),
    Mutation(
        id="fan-folder-not-durable",
        rows=("P16",),
        breaks="an object is reported before the folder that holds it is on disk",
        file="durarepo/store/atomic.py",
        old='        _sync_path(parent or b".")\n',
        new="",
        tests=(_POWER,),
    ),
    Mutation(
        id="line-not-durable",
        rows=("P16",),
        breaks="a line of a ledger or journal is reported before it is on disk",
        file="durarepo/store/atomic.py",
        old="_write_all(self._descriptor, data)\n            os.fsync(self._descriptor)\n",
        new="_write_all(self._descriptor, data)\n",
        tests=(_POWER,),
    ),
    Mutation(
        id="marks-not-durable",
        rows=("P16",),
        breaks="a replaced file of the state is reported before its name is on disk",
        file="durarepo/store/atomic.py",
        old="            self._temporary = None\n            os.fsync(self._folder)\n",
        new="            self._temporary = None\n",
        tests=(_POWER,),
    ),
    Mutation(
        id="source-error-as-store-error",
        rows=("X2",),
        breaks="a file that cannot be read is told as a failure of the store",
        file="durarepo/source/reading.py",
        old="from durarepo.core.errors import SourceError, VanishedError\n",
        new="from durarepo.core.errors import StoreError as SourceError\n"
        "from durarepo.core.errors import VanishedError\n",
        tests=(f"{_FAULTS}::test_a_failing_read_of_a_source_is_never_a_failure_of_the_store",),
    ),
    Mutation(
        id="failed-look-at-a-copy-unnamed",
        rows=("X2",),
        breaks="a work folder that fails is told as a mistake in the program",
        file="durarepo/source/sqliteclean.py",
        old="            return os.stat(self.path).st_size\n        except OSError",
        new="            return os.stat(self.path).st_size\n        except ValueError",
        tests=(
            f"{_UNIT}/source/test_sqlitepages.py"
            "::test_a_copy_that_cannot_be_looked_at_is_a_failure_of_the_store",
        ),
    ),
    Mutation(
        id="failed-look-for-a-destination-unnamed",
        rows=("X2",),
        breaks="a destination that cannot be looked at is told as a mistake in the program",
        file="durarepo/repository/scratch_place.py",
        old="        return False\n    except OSError as error:\n",
        new="        return False\n    except ValueError as error:\n",
        tests=(
            f"{_UNIT}/repository/test_scratch.py"
            "::test_a_destination_that_cannot_be_looked_at_is_a_failure_of_the_store",
        ),
    ),
    Mutation(
        id="failed-sync-swallowed",
        rows=("X2",),
        breaks="a failed sync of a ledger or journal is passed over",
        file="durarepo/store/atomic.py",
        old='                error.add_note(f"and the torn end stays: {second.strerror}")\n'
        '            raise store_error(error, "append to", self._path) from error\n',
        new='                error.add_note(f"and the torn end stays: {second.strerror}")\n',
        tests=(f"{_FAULTS}::test_a_failing_sync_is_always_a_failure_of_the_store",),
    ),
    Mutation(
        id="ok-without-reading",
        rows=("X1",),
        breaks="a pack is called whole although its bytes were not compared",
        file="durarepo/repository/inspection.py",
        old="return whole.digest() == bytes.fromhex(self.report.pin.name)",
        new="return self._reached == self.index.end",
        tests=(
            f"{_UNIT}/operations/test_verify.py"
            "::test_a_flipped_bit_names_the_pack_and_the_one_file_in_that_frame",
            f"{_UNIT}/operations/test_verify.py"
            "::test_one_damaged_pack_hides_no_other_and_nothing_is_changed",
        ),
    ),
    Mutation(
        id="once-there-always-there",
        rows=("X1",),
        breaks="what one manifest pins is taken for pinned by all",
        file="durarepo/repository/losses.py",
        old="if before is not None and before.pins <= self.pins:",
        new="if before is not None:",
        tests=(
            f"{_UNIT}/operations/test_verify_details.py"
            "::test_a_folder_of_two_manifests_is_missing_in_the_one_that_does_not_pin_it",
        ),
    ),
    Mutation(
        id="read-error-passed-over",
        rows=("X1",),
        breaks="a part of a pack that could not be read, and was good before, is passed over",
        file="durarepo/repository/inspection.py",
        old="            elif pass_.skip(ordinal):\n",
        new="            elif pass_.skip(ordinal) or True:\n",
        tests=(f"{_FAULTS}::test_an_object_that_cannot_be_read_is_never_verified",),
    ),
    Mutation(
        id="missing-root-swallowed",
        rows=("X2",),
        breaks="a root that is gone is passed over",
        file="durarepo/local/configuration.py",
        old='roots=top.tables("root", _parse_root),',
        new='roots=tuple(r for r in top.tables("root", _parse_root) if os.path.isdir(r.path)),',
        tests=(
            f"{_UNIT}/operations/test_snapshot_unchanged.py"
            "::test_one_root_of_two_that_is_gone_ends_the_run",
        ),
    ),
    Mutation(
        id="store-error-as-source-error",
        rows=("X2",),
        breaks="a full disk is told as a source that cannot be read",
        file="durarepo/store/atomic.py",
        old="from durarepo.core.errors import StoreError\n",
        new="from durarepo.core.errors import SourceError as StoreError\n",
        tests=(
            f"{_UNIT}/operations/test_snapshot_unchanged.py"
            "::test_an_error_of_the_store_is_never_an_error_of_the_source",
            f"{_FAULTS}::test_a_failing_sync_is_always_a_failure_of_the_store",
        ),
    ),
    Mutation(
        id="room-not-asked",
        rows=("X6",),
        breaks="a full disk is found out after hours of reading",
        file="durarepo/local/space.py",
        old="    if free < needed_bytes:\n",
        new="    if free < 0:\n",
        tests=(f"{_UNIT}/local/test_space.py::test_too_little_room_is_told_before_the_work",),
    ),
    Mutation(
        id="any-key-signs",
        rows=("A6b",),
        breaks="a computer whose key was rotated away or revoked goes on writing",
        file="durarepo/repository/standing.py",
        old="    repository.check_signer()\n",
        new="",
        tests=(f"{_ROTATION}::test_the_old_signing_key_writes_nothing_more",),
    ),
    Mutation(
        id="registry-not-followed",
        rows=("A6b",),
        breaks="a run that was open before writes into an epoch that has ended",
        file="durarepo/repository/standing.py",
        old="    repository.refresh_registry()\n",
        new="",
        tests=(
            f"{_REGISTRY}::test_a_run_that_was_open_before_follows_the_registry_admitted_meanwhile",
        ),
    ),
    Mutation(
        id="packs-of-another-naming-key",
        rows=("A6b",),
        breaks="after a new naming key a manifest pins packs of the old one",
        file="durarepo/repository/standing.py",
        old="manifests = [one for one in manifests if one and repository.keeps_naming(one.epoch)]",
        new="manifests = [one for one in manifests if one]",
        tests=(f"{_ROTATION}::test_under_a_new_naming_key_everything_is_sealed_anew",),
    ),
    Mutation(
        id="killed-run-of-another-naming-key",
        rows=("A6b",),
        breaks="packs of a run killed before a rotation are taken over after it",
        file="durarepo/repository/standing.py",
        old="has_keys = repository.keeps_naming(epoch) and is_todays(",
        new="has_keys = epoch and is_todays(",
        tests=(
            f"{_ROTATION}::test_a_run_that_was_killed_before_a_new_naming_key_is_not_taken_over",
        ),
    ),
    Mutation(
        id="marked-folder-grows-unseen",
        rows=("A2d",),
        breaks="a marked folder is told of once, and then work hides in it",
        file="durarepo/source/marked.py",
        old="        if self._known is not None and short not in self._known:\n",
        new="        if self._known is None and not short:\n",
        tests=(
            f"{_EXCLUSION}::test_a_marked_folder_is_told_of_again_when_it_grows_by_new_names",
            f"{_UNIT}/source/test_marked.py::test_what_a_compiler_wrote_is_no_work",
        ),
    ),
    Mutation(
        id="closed-folder-passes-for-empty",
        rows=("A2d",),
        breaks="a folder in a marked one that cannot be listed passes for an empty one",
        file="durarepo/source/marked.py",
        old="            self.works += 1  # nobody can say that it holds no work\n",
        new="",
        tests=(
            f"{_UNIT}/source/test_marked.py"
            "::test_a_folder_that_is_too_deep_to_be_listed_counts_as_work",
        ),
    ),
    Mutation(
        id="retired-identity-sees-damage",
        rows=("A6b",),
        breaks="manifests that are sealed to others pass for damaged ones",
        file="durarepo/repository/chaincheck.py",
        old="                    slots.chain.sealed.add(number)\n                    continue\n",
        new="                    slots.chain.sealed.add(number)\n",
        tests=(
            f"{_UNIT}/operations/test_recipients.py"
            "::test_a_recipient_that_came_later_reads_and_verifies_from_then_on",
        ),
    ),
    Mutation(
        id="closed-envelope-not-compared",
        rows=("A6b",),
        breaks="a retired identity accepts another envelope than the one that was seen",
        file="durarepo/repository/chain.py",
        old="if seen is not None and seen.digest != self.high.digest:",
        new="if seen is not None and not seen.digest:",
        tests=(
            f"{_UNIT}/operations/test_recipients.py"
            "::test_what_was_seen_above_has_to_be_there_although_it_stays_closed",
        ),
    ),
    Mutation(
        id="killed-run-of-other-recipients",
        rows=("A6b",),
        breaks="packs of a run killed before a recipient was retired are pinned after it",
        file="durarepo/repository/standing.py",
        old="if same_head and size == pin.size and has_keys:",
        new="if same_head and size == pin.size and repository.keeps_naming(epoch):",
        tests=(
            f"{_UNIT}/operations/test_recipients.py"
            "::test_a_run_that_was_killed_before_a_retirement_is_not_taken_over",
        ),
    ),
    Mutation(
        id="cut-passes-for-rollback",
        rows=("A6d",),
        breaks="a reader refuses the chain that the owner has cut behind a thief",
        file="durarepo/repository/chain.py",
        old="    if record.is_cut_off(marks.epoch, marks.sequence):\n",
        new="    if not record:\n",
        tests=(f"{_REVOCATION}::test_a_reader_that_has_seen_more_follows_the_owner_back",),
    ),
    Mutation(
        id="ended-epoch-forked",
        rows=("A6b", "A6d"),
        breaks="whoever holds an old naming key makes good history unreadable",
        file="durarepo/repository/chain.py",
        old="        if not later or identity is None:\n",
        new="        if later or identity is None:\n",
        tests=(
            f"{_REVOCATION}::test_after_the_revocation_the_thief_s_manifests_are_gone_"
            "and_the_good_ones_restorable",
        ),
    ),
    Mutation(
        id="registry-skips-versions",
        rows=("A6b",),
        breaks="a registry that does not follow is admitted",
        file="durarepo/repository/nextregistry.py",
        old="    if after.version != before.version + 1:\n",
        new="    if not after.version:\n",
        tests=(f"{_REGISTRY}::test_what_is_fixed_cannot_be_changed_even_by_the_owner",),
    ),
    Mutation(
        id="recipients-fixed-by-a-rotation",
        rows=("A6b",),
        breaks="no recipient can be added or retired once the signing key was rotated",
        file="durarepo/repository/nextregistry.py",
        old="    is_naming = old.naming_key != new.naming_key and not may_reseal\n",
        new="    is_naming = old.naming_key != new.naming_key\n",
        tests=(
            f"{_UNIT}/operations/test_recipients.py"
            "::test_recipients_change_after_the_signing_key_was_rotated",
        ),
    ),
    Mutation(
        id="reordered-recipients-reseal",
        rows=("A6b",),
        breaks="a draft that only turns recipients round locks every reader out",
        file="durarepo/repository/nextregistry.py",
        old="has_others = set(new.current.data_recipients) != set(old.current.data_recipients)",
        new="has_others = new.current.data_recipients != old.current.data_recipients",
        tests=(f"{_REGISTRY}::test_what_is_fixed_cannot_be_changed_even_by_the_owner",),
    ),
    Mutation(
        id="evidence-key-signs-manifests",
        rows=("A6b",),
        breaks="a key admitted for evidence becomes signing.key, and no snapshot can be signed",
        file="durarepo/repository/keyfolder.py",
        old="    signers = repository.record.current.manifest_signers\n",
        new="    signers = [one.public for one in repository.record.current.signers]\n",
        tests=(f"{_REGISTRY}::test_a_key_that_waits_for_evidence_never_becomes_the_signing_key",),
    ),
    Mutation(
        id="stale-draft",
        rows=("A6d",),
        breaks="an epoch begins before manifests that were made since, which are lost",
        file="durarepo/repository/admission.py",
        old="        if current.first_sequence != head + 1:\n",
        new="        if current.first_sequence > head + 1:\n",
        tests=(f"{_REGISTRY}::test_a_draft_that_the_chain_has_left_behind_is_refused",),
    ),
    Mutation(
        id="revocation-cuts-off-since-the-draft",
        rows=("A6d",),
        breaks="work done under a good key while the owner signs a revocation is dropped",
        file="durarepo/repository/admission.py",
        old="    elif cuts_off_others(\n        repository, current.first_sequence, {",
        new="    elif cuts_off_others(\n        repository, 1, {",
        tests=(
            f"{_REVOCATION}::test_work_done_between_draft_and_admission_of_a_revocation_"
            "is_not_cut_off",
        ),
    ),
    Mutation(
        id="revocation-asks-the-ledger-alone",
        rows=("A6d",),
        breaks="a revocation drops what another machine has signed",
        file="durarepo/repository/revoking.py",
        old="self._ledger.get(sequence) or self._read(sequence)",
        new="self._ledger.get(sequence)",
        tests=(
            f"{_REVOCATION}::test_what_another_machine_signed_stays_though_the_ledger_here_lacks_it",
        ),
    ),
    Mutation(
        id="partial-takes-what-was-cut-off",
        rows=("A6d",),
        breaks="a partial run after a revocation takes folders over that no manifest keeps",
        file="durarepo/repository/treekeeper.py",
        old="        if opened.row is None or self.last_complete is None:\n",
        new="        if opened.row is None:\n",
        tests=(f"{_REVOCATION}::test_a_partial_manifest_after_a_cut_holds_what_was_reached",),
    ),
    Mutation(
        id="replaced-at-the-end-of-an-epoch",
        rows=("A6b",),
        breaks="a machine is told that all is well though its own manifests were replaced",
        file="durarepo/repository/replaced.py",
        old="        elif ends.get(sequence, digest) != digest:\n",
        new="        elif not digest:\n",
        tests=(
            f"{_REVOCATION}::test_what_a_machine_made_behind_the_end_of_an_epoch_is_not_forgotten",
        ),
    ),
    Mutation(
        id="replaced-behind-the-end-of-an-epoch",
        rows=("A6b",),
        breaks="what a machine made itself drops out of the chain without a word",
        file="durarepo/repository/replaced.py",
        old="found.update(() if is_revoked else (sequence,))",
        new="found.update(())",
        tests=(
            f"{_REVOCATION}::test_what_a_machine_made_behind_the_end_of_an_epoch_is_not_forgotten",
        ),
    ),
    Mutation(
        id="base-nobody-signed",
        rows=("A6b",),
        breaks="an owner is shown the difference to a registry that somebody made up",
        file="durarepo/operations/registry.py",
        old="    before = check_registry_document(base, primitives.sha256(public))\n",
        new="    before = parse_registry(base.statement)\n",
        tests=(f"{_REGISTRY}::test_a_draft_whose_base_nobody_signed_is_not_signed",),
    ),
    Mutation(
        id="content-not-judged",
        rows=("A2a", "A2b"),
        breaks="what the content rules leave out is kept",
        file="durarepo/repository/contents.py",
        old=(
            "        if judged.decision is Decision.EXCLUDE:\n"
            "            return _left_out(judged, quiet=True)\n"
            "        if judged.data"
        ),
        new="        if judged.data",
        tests=(f"{_EXCLUSION}::test_a_value_that_cannot_be_taken_out_leaves_the_file_out",),
    ),
    Mutation(
        id="large-file-not-judged",
        rows=("A2b",),
        breaks="a key in a file of more than one read is kept",
        file="durarepo/repository/largefiles.py",
        old="        judged = self._judge(path, held.data)\n",
        new="        judged = self._judge(path, held.data[:0])\n",
        tests=(f"{_EXCLUSION}::test_a_file_with_a_key_header_is_left_out_wherever_it_stands",),
    ),
    Mutation(
        id="second-read-believed",
        rows=("A2a", "A2b"),
        breaks="bytes that changed after the scan are kept unscanned",
        file="durarepo/repository/largefiles.py",
        old="digest.digest() != seen[number]",
        new="not digest.digest()",
        tests=(f"{_EXCLUSION}::test_a_file_that_changes_between_scan_and_cut_is_not_stored",),
    ),
    Mutation(
        id="old-rules-believed",
        rows=("A2a",),
        breaks="a new rule finds nothing in files that did not change",
        file="durarepo/repository/treekeeper.py",
        old="        same = same and self._is_same_policy and",
        new="        same = same and",
        tests=(f"{_EXCLUSION}::test_other_rules_make_everything_be_read_again",),
    ),
    Mutation(
        id="marks-of-old-rules-believed",
        rows=("A2a",),
        breaks="what a killed run kept under older rules is carried over",
        file="durarepo/repository/exclusion.py",
        old=(
            "        return hashlib.blake2b(record, key=self._mark_key, "
            "digest_size=len(record)).digest()\n"
        ),
        new="        return record\n",
        tests=(f"{_EXCLUSION}::test_files_of_a_killed_run_are_believed_under_the_same_rules_only",),
    ),
    Mutation(
        id="secret-in-ledger",
        rows=("A2a", "A2f"),
        breaks="a path that holds a token is written out",
        file="durarepo/repository/tally.py",
        old="        keyed = self._short_id(path)\n",
        new='        keyed = self._short_id(b"")\n',
        tests=(f"{_EXCLUSION}::test_a_name_that_holds_a_secret_is_told_by_a_short_id_alone",),
    ),
    Mutation(
        id="attribute-not-judged",
        rows=("A2a",),
        breaks="a token in an extended attribute is kept",
        file="durarepo/repository/contents.py",
        old="            entry, redacted = self._without_secrets(entry)\n",
        new="            redacted = ()\n",
        tests=(f"{_EXCLUSION}::test_an_attribute_that_holds_a_secret_is_left_out",),
    ),
    Mutation(
        id="target-not-judged",
        rows=("A2a",),
        breaks="a token in the target of a link is kept",
        file="durarepo/repository/contents.py",
        old="        if target is not None and self.exclusion.contents.holds_secret(target):\n",
        new='        if target is None and self.exclusion.contents.holds_secret(b""):\n',
        tests=(f"{_EXCLUSION}::test_a_link_whose_target_holds_a_secret_is_left_out",),
    ),
    Mutation(
        id="path-rules-not-asked",
        rows=("A2a", "A2c", "A2d"),
        breaks="files that a name gives away are opened and kept",
        file="durarepo/repository/roots.py",
        old="            is_excluded=by_either if root.exclude else paths,\n",
        new="            is_excluded=by_either if root.exclude else None,\n",
        tests=(f"{_EXCLUSION}::test_what_a_path_rule_leaves_out_is_never_opened",),
    ),
    Mutation(
        id="folder-taken-for-a-store",
        rows=("A2d",),
        breaks="work in a folder of the home that has the name of a store is left out",
        file="durarepo/source/pathjudge.py",
        old="is_folder=_is_folder(path))",
        new="is_folder=False)",
        tests=(
            f"{_UNIT}/source/test_pathjudge.py"
            "::test_a_folder_of_the_home_with_the_name_of_a_store_is_work",
        ),
    ),
    Mutation(
        id="old-secret-path-told",
        rows=("A2a", "A2f"),
        breaks="a look for secrets prints a path that is one",
        file="durarepo/operations/verify_secrets.py",
        old="            path=path if short is None else None,\n",
        new="            path=path,\n",
        tests=(
            f"{_UNIT}/operations/test_verify_secrets.py"
            "::test_a_path_that_holds_a_secret_is_told_by_a_keyed_short_id",
        ),
    ),
    Mutation(
        id="old-secret-not-noted",
        rows=("A2a",),
        breaks="a look for secrets passes over the content of files",
        file="durarepo/operations/verify_secrets.py",
        old="        if judged.decision is not Decision.INCLUDE and judged.stage is not None:\n",
        new="        if judged.decision is Decision.INCLUDE and judged.stage is not None:\n",
        tests=(
            f"{_UNIT}/operations/test_verify_secrets.py"
            "::test_every_kind_of_secret_in_an_old_snapshot_is_told",
        ),
    ),
    Mutation(
        id="long-cells-not-looked-at",
        rows=("A2a",),
        breaks="a value that does not lie whole in one page is not looked at",
        file="durarepo/source/sqliteclean.py",
        old="            yield from _joined_cells(long)",
        new="            long.close()",
        tests=(
            f"{_UNIT}/source/test_sqlitepages.py"
            "::test_a_token_that_the_end_of_a_page_cuts_is_found",
        ),
    ),
    Mutation(
        id="seen-pages-not-looked-at",
        rows=("A2a",),
        breaks="a value that follows another without a gap is not looked at by itself",
        file="durarepo/source/sqliteclean.py",
        old="            yield from self._seen_values(scan, page_bytes)",
        new="            pass",
        tests=(
            f"{_UNIT}/source/test_sqlitepages.py"
            "::test_a_token_is_found_by_the_cells_that_are_looked_at",
        ),
    ),
    Mutation(
        id="free-pages-kept",
        rows=("A2a",),
        breaks="what was deleted is kept in the free pages of a database",
        file="durarepo/source/sqliteclean.py",
        old="            clear_free_pages(self.path)",
        new="            pass",
        tests=(
            f"{_UNIT}/source/test_sqlitefree.py"
            "::test_no_part_of_a_deleted_value_that_pages_cut_is_kept",
        ),
    ),
    Mutation(
        id="slack-kept",
        rows=("A2a",),
        breaks="what was deleted between the cells of a page is kept",
        file="durarepo/source/sqliteclean.py",
        old="            clear_slack(copy.path)",
        new="            pass",
        tests=(
            f"{_UNIT}/source/test_sqliteslack.py"
            "::test_a_deleted_token_that_begins_in_the_middle_of_a_word_is_not_kept",
        ),
    ),
    Mutation(
        id="slack-behind-values-kept",
        rows=("A2a",),
        breaks="what an overflow page held before stays behind the end of a value",
        file="durarepo/source/sqliteslack.py",
        old="                    _clear_behind(file, shape, chain)",
        new="                    del chain",
        tests=(
            f"{_UNIT}/source/test_sqliteslack.py"
            "::test_nothing_of_a_value_that_no_cell_holds_is_left",
        ),
    ),
    Mutation(
        id="maps-of-pages-cleared",
        rows=("A2a",),
        breaks="a page that says where others belong is overwritten, as it begins like a tree",
        file="durarepo/source/sqliteslack.py",
        old="    maps = range(2, pages + 1, step) if has_maps else ()",
        new="    maps: tuple[int, ...] = ()",
        tests=(
            f"{_UNIT}/source/test_sqliteslack.py::test_the_pages_that_say_where_others_belong_stay",
        ),
    ),
    Mutation(
        id="slack-of-unchecked-pages-cleared",
        rows=("A2a",),
        breaks="bytes of a copy that no check vouches for are overwritten",
        file="durarepo/source/sqliteclean.py",
        old="        if cleaned.judged.decision is not Decision.EXCLUDE and is_checked:",
        new="        if cleaned.judged.decision is not Decision.EXCLUDE:",
        tests=(
            f"{_UNIT}/source/test_sqliteslack.py"
            "::test_a_copy_that_did_not_pass_its_check_keeps_what_it_leaves_unread",
        ),
    ),
    Mutation(
        id="damaged-freelist-believed",
        rows=("A2a",),
        breaks="pages are overwritten because a damaged list calls them free",
        file="durarepo/source/sqlitefree.py",
        old="    if not is_sound or (leaves and not (min(leaves) > 1 and max(leaves) <= last)):",
        new="    if False:",
        tests=(
            f"{_UNIT}/source/test_sqlitefree.py::test_a_damaged_list_of_free_pages_changes_nothing",
        ),
    ),
    Mutation(
        id="nesting-not-refused",
        rows=("A2a",),
        breaks="settings that nest deeper than is looked into are kept",
        file="durarepo/policy/tokenleaves.py",
        old="        if len(self.levels) > NESTING_MOST:",
        new="        if False:",
        tests=(
            "tests/hostile/test_settings_files.py"
            "::test_settings_that_nest_deeper_than_is_looked_into_are_left_out",
        ),
    ),
    Mutation(
        id="parser-not-asked",
        rows=("A2a",),
        breaks="a secret that a parser states and no reader locates is kept",
        file="durarepo/policy/redaction.py",
        old="    if stated is not None:\n        return Refusal(stated)",
        new="",
        tests=(
            "tests/unit/policy/test_redaction.py"
            "::test_what_a_parser_states_and_no_reader_locates_is_left_out",
        ),
    ),
    Mutation(
        id="repeats-kept",
        rows=("A2a",),
        breaks="a value taken out of one place stays in another of the same file",
        file="durarepo/policy/redaction.py",
        old="        spans = _repeated(now, taken) or _found(now, form, rules, engine)",
        new="        spans = _found(now, form, rules, engine)",
        tests=(
            "tests/unit/policy/test_repeats.py::test_a_value_goes_wherever_it_stands_in_its_file",
        ),
    ),
    Mutation(
        id="names-apart-kept",
        rows=("A2a",),
        breaks="a value of JSON that a bracket or a comment parts from its name is kept",
        file="durarepo/policy/redaction.py",
        old="        return any(map(_says, _apart(data)))",
        new="        return False",
        tests=(
            "tests/policy/test_settings_forms.py"
            "::test_in_every_form_the_secret_goes_and_all_else_stays",
        ),
    ),
    Mutation(
        id="settings-in-values-kept",
        rows=("A2a",),
        breaks="a setting within a value, such as an argument or an address, is kept",
        file="durarepo/policy/loose.py",
        old="    yield from _in_values(data)\n",
        new="",
        tests=(
            "tests/policy/test_settings_forms.py"
            "::test_in_every_form_the_secret_goes_and_all_else_stays",
        ),
    ),
    Mutation(
        id="loose-secrets-kept",
        rows=("A2a",),
        breaks="what says secret in a form that no reader knows is kept",
        file="durarepo/policy/redaction.py",
        old="    if document is None and not is_large and has_loose_secret(data):",
        new="    if False:",
        tests=(
            "tests/policy/test_settings_forms.py"
            "::test_in_every_form_the_secret_goes_and_all_else_stays",
        ),
    ),
    Mutation(
        id="wide-settings-kept",
        rows=("A2a",),
        breaks="settings in UTF-16 are judged by bytes that say nothing",
        file="durarepo/policy/redaction.py",
        old="    if form.is_configuration and _is_wide(data, engine):",
        new="    if False:",
        tests=("tests/policy/test_settings_forms.py::test_settings_in_wide_letters_go_as_a_whole",),
    ),
    Mutation(
        id="parts-passed-over",
        rows=("A2a",),
        breaks="a part of a file in which an engine saw something is passed over",
        file="durarepo/policy/scanning.py",
        old="        passed = (seen - at - _AFTER_BYTES) // _BLOCK_BYTES",
        new="        passed = (seen - at) // _BLOCK_BYTES + 1",
        tests=("tests/policy/test_laws.py::test_a_header_across_the_edge_of_a_window_is_found",),
    ),
    Mutation(
        id="border-of-known-parts-passed-over",
        rows=("A2a",),
        breaks="what two known parts make where they come to follow each other is not scanned",
        file="durarepo/policy/remembered.py",
        old="self._places.get(key, self._nowhere)\n            self._open()\n",
        new="self._places.get(key, self._nowhere)\n"
        "            self._open() if self._at == self._nowhere else None\n",
        tests=(
            "tests/policy/test_remembered.py"
            "::test_a_token_that_comes_to_stand_across_two_parts_is_found",
        ),
    ),
    Mutation(
        id="parts-of-dead-packs-named",
        rows=("A3g",),
        breaks="a part of a database is named although a pack that it needs is gone",
        file="durarepo/repository/knownparts.py",
        old="        return stored if self._sink.are_live([owner for _, owner in stored]) else []",
        new="        return stored",
        tests=(
            f"{_UNIT}/operations/test_snapshot_remembered.py"
            "::test_parts_whose_packs_are_gone_are_put_again",
        ),
    ),
    Mutation(
        id="memory-of-another-copy-kept",
        rows=("A2a",),
        breaks="what the scan of a first copy noted is believed though a second one was kept",
        file="durarepo/repository/contents.py",
        old="self._memories.keep(path, scanned if is_clean",
        new="self._memories.keep(path, memory.scanned if is_clean",
        tests=(
            f"{_UNIT}/operations/test_snapshot_remembered.py"
            "::test_a_token_that_is_gone_from_the_second_copy_is_found_when_it_comes_back",
        ),
    ),
    Mutation(
        id="memory-of-another-policy-believed",
        rows=("A2a",),
        breaks="what an older version of the policy saw nothing in is not scanned again",
        file="durarepo/repository/scanmemories.py",
        old="        if noted is None or not noted.startswith(self._mark):\n",
        new="        if noted is None:\n",
        tests=(
            f"{_UNIT}/operations/test_snapshot_remembered.py"
            "::test_a_memory_is_believed_by_its_policy_alone_and_goes_with_its_file",
        ),
    ),
    Mutation(
        id="variable-adds-an-authority",
        rows=("A4d",),
        breaks="a variable of the environment adds an authority",
        file="durarepo/store/tls.py",
        old="        _load_system(context)\n        return context",
        new="        context.load_default_certs()\n        return context",
        tests=("tests/unit/store/test_tls.py::test_no_variable_adds_an_authority",),
    ),
    Mutation(
        id="unverified-connection",
        rows=("A4d",),
        breaks="a caller can hand in a context that verifies nothing",
        file="durarepo/store/transport.py",
        old="if context.verify_mode is not ssl.CERT_REQUIRED or not context.check_hostname:",
        new="if context is None:",
        tests=("tests/unit/store/test_tls.py::test_a_context_that_does_not_verify_is_refused",),
    ),
    Mutation(
        id="tls-refusal-tried-again",
        rows=("A4d",),
        breaks="a server whose certificate is refused is tried again and again",
        file="durarepo/store/transport.py",
        old="        why = getattr(cause",
        new='        return BrokenOffError("no TLS")\n        why = getattr(cause',
        tests=(
            "tests/unit/store/test_tls.py::test_a_bad_certificate_ends_it_before_a_byte_is_sent",
        ),
    ),
    Mutation(
        id="dripping-head-waited-for",
        rows=("A4f",),
        breaks="a server that drips its head holds the client without end",
        file="durarepo/store/transport.py",
        old="        self.fp = io.BufferedReader(_WatchedReads(raw, _RUNNING.get()))",
        new="        self.fp = io.BufferedReader(raw)",
        tests=("tests/unit/store/test_https.py::test_a_server_that_drips_for_ever_is_given_up",),
    ),
    Mutation(
        id="password-in-a-url",
        rows=("A4d",),
        breaks="a URL with a password gets into stream.toml, and with it into manifests",
        file="durarepo/local/configuration.py",
        old='    parse_remote_url(table.text("url"))\n',
        new="",
        tests=(
            "tests/unit/local/test_remotes.py::test_a_remote_that_cannot_be_is_refused_when_stream_toml_is_read",
        ),
    ),
    Mutation(
        id="agent-tells-the-library",
        rows=("A4e",),
        breaks="a request tells which library and version sent it",
        file="durarepo/store/transport.py",
        old='        fields = {"User-Agent": USER_AGENT, "Accept-Encoding"',
        new='        fields = {"Accept-Encoding"',
        tests=("tests/unit/store/test_https.py::test_requests_carry_nothing_that_describes",),
    ),
    Mutation(
        id="put-without-condition",
        rows=("A4f",),
        breaks="a PUT asks a server to replace what is there",
        file="durarepo/store/https.py",
        old='    return {**fields, "If-None-Match": "*"} if is_conditional else fields',
        new="    return fields",
        tests=(
            "tests/unit/store/test_https.py::test_every_put_is_conditional_and_carries_its_digest",
        ),
    ),
    Mutation(
        id="taken-means-there",
        rows=("A4f",),
        breaks="what lies under a name already counts as ours, whatever it is",
        file="durarepo/store/https.py",
        old="        if size != body.size or (digest is not None and digest != body.digest):",
        new="        if size < 0:",
        tests=(
            "tests/store_contract/test_remotes.py::test_a_torn_object_is_never_taken_for_whole",
            "tests/store_contract/test_remotes.py::test_one_wrong_byte_is_never_taken_for_right",
            "tests/unit/store/test_https.py::test_other_bytes_are_an_alarm_whatever_is_answered",
        ),
    ),
    Mutation(
        id="slots-not-read-back",
        rows=("A4f",),
        breaks="a slot counts as pushed when its size is right",
        file="durarepo/store/https.py",
        old="            is_read_back = not body.is_named(name)",
        new="            is_read_back = False",
        tests=(
            "tests/unit/store/test_https.py::test_a_slot_is_read_back_even_where_digests_are_trusted",
        ),
    ),
    Mutation(
        id="digest-believed-unchecked",
        rows=("A4f",),
        breaks="a digest is believed that no check saw to be true",
        file="durarepo/local/remotes.py",
        old="        trusts_digest=known is not None and known.reports_digest is Can.YES,",
        new="        trusts_digest=True,",
        tests=(
            "tests/unit/local/test_remotes.py::test_a_reported_digest_is_believed_only_where_it_was_seen_true",
        ),
    ),
    Mutation(
        id="changed-body-sent",
        rows=("A4f",),
        breaks="a local object that changes while it is sent is stored as whole",
        file="durarepo/store/bodies.py",
        old="    if size != body.size or digest.digest() != body.digest:",
        new="    if size < 0:",
        tests=(
            "tests/store_contract/test_remotes.py::test_a_body_that_changed_since_it_was_measured_leaves_nothing",
        ),
    ),
    Mutation(
        id="told-created-counts",
        rows=("A4f",),
        breaks="a server that says 201 for what it did not store passes the check",
        file="durarepo/store/servercheck.py",
        old="        if tried.status in _PROMISED or self._bytes(tried.probe.name)",
        new="        if self._bytes(tried.probe.name)",
        tests=("tests/store_contract/test_capabilities.py::test_a_fault_is_found_out",),
    ),
    Mutation(
        id="torn-not-looked-for",
        rows=("A4f",),
        breaks="a server that publishes torn objects passes the check",
        file="durarepo/store/servercheck.py",
        old='            if self._ask("HEAD", one.name).status != MISSING:',
        new='            if self._ask("HEAD", one.name).status < 0:',
        tests=("tests/store_contract/test_capabilities.py::test_a_fault_is_found_out",),
    ),
    Mutation(
        id="busy-taken-for-write-once",
        rows=("A4f",),
        breaks="a server that was busy when it should have refused counts as write-once",
        file="durarepo/store/servercheck.py",
        old="        return Can.YES if tried.status in _FORBIDS else Can.UNKNOWN",
        new="        return Can.YES",
        tests=(
            "tests/store_contract/test_capabilities.py::test_what_shows_nothing_is_not_taken_for_a_capability",
        ),
    ),
    Mutation(
        id="torn-never-taken",
        rows=("A4f",),
        breaks="a server that never took the torn body counts as one that drops it",
        file="durarepo/store/servercheck.py",
        old="        return Can.YES if all(one.is_telling for one in torn) else Can.UNKNOWN",
        new="        return Can.YES",
        tests=(
            "tests/store_contract/test_capabilities.py::test_what_shows_nothing_is_not_taken_for_a_capability",
        ),
    ),
    Mutation(
        id="mirror-takes-any-bytes",
        rows=("A4f",),
        breaks="the mirror stores bytes that do not fit their digest",
        file="durarepo/mirror/receiving.py",
        old="if self.received != self._upload.size or digest.digest() != self._upload.digest:",
        new="if self.received < 0:",
        tests=(
            "tests/store_contract/test_mirror.py::test_bytes_that_do_not_fit_their_digest_are_not_kept",
        ),
    ),
    Mutation(
        id="mirror-opens-all-bases",
        rows=("A4f",),
        breaks="a token opens the bases of other streams",
        file="durarepo/mirror/app.py",
        old="        if ask.scope != grant.scope:",
        new="        if ask.scope not in self._shelves:",
        tests=("tests/store_contract/test_mirror.py::test_without_its_token_a_base_tells_nothing",),
    ),
    Mutation(
        id="mirror-readers-write",
        rows=("A4f",),
        breaks="a token that may only read writes",
        file="durarepo/mirror/app.py",
        old='        if ask.method == "PUT" and grant.right is not Right.PUT:',
        new='        if ask.method == "POST":',
        tests=(
            "tests/store_contract/test_mirror.py::test_a_reader_cannot_write_and_only_metrics_see_metrics",
        ),
    ),
    Mutation(
        id="folder-made-where-none-is",
        rows=("A4f",),
        breaks="the mount point of a missing disk becomes an empty remote",
        file="durarepo/store/folder.py",
        old="            self._store = LocalDir(folder)",
        new="            self._store = LocalDir(folder, create=True)",
        tests=(
            "tests/store_contract/test_remotes.py::test_a_folder_that_is_not_there_is_no_empty_remote",
        ),
    ),
    Mutation(
        id="mirror-waits-for-heads",
        rows=("A4f",),
        breaks="the mirror waits for ever for the head of a request",
        file="durarepo/mirror/patience.py",
        old="        self._timer = self.loop.call_later(seconds, self._cut)",
        new="        self._timer = None",
        tests=(
            "tests/unit/mirror/test_patience.py::test_a_head_that_does_not_come_is_not_waited_for",
            "tests/unit/mirror/test_patience.py::test_what_follows_an_early_answer_is_dropped_and_not_for_ever",
        ),
    ),
    Mutation(
        id="mirror-waits-for-bodies",
        rows=("A4f",),
        breaks="the mirror waits for ever for the rest of a body",
        file="durarepo/mirror/receiving.py",
        old="await asyncio.wait_for(self._receive(), max(patience, 0))",
        new="await self._receive()",
        tests=(
            "tests/unit/mirror/test_patience.py::test_a_body_that_stalls_is_answered_and_not_kept",
        ),
    ),
    Mutation(
        id="length-before-token-passed-over",
        rows=("A2a",),
        breaks="a token between the lengths and tags of a binary format is stored",
        file="durarepo/policy/contentrules.py",
        old="            if match is None and at and at + data[at - 1] <= len(data):",
        new="            if match is None and not at and at + data[at - 1] <= len(data):",
        tests=("tests/policy/test_borders.py::test_a_token_between_lengths_and_tags_is_found",),
    ),
    Mutation(
        id="border-of-token-asked-everywhere",
        rows=("A2a",),
        breaks="a token behind a letter is stored, whatever its prefix",
        file="durarepo/policy/contentrules.py",
        old="            if self.rule.is_distinct or _begins_word(data, at):",
        new="            if _begins_word(data, at):",
        tests=(
            "tests/policy/test_borders.py::test_a_prefix_that_no_word_ends_with_is_found_in_a_word",
        ),
    ),
    Mutation(
        id="base64-decoded-from-each-place",
        rows=("A2a",),
        breaks="a file of base64 is decoded as often as something in it looks like a header",
        file="durarepo/policy/contentrules.py",
        old="                start = _end_of_decoded(data, start)",
        new="                start = max(start, 0)",
        tests=("tests/policy/test_borders.py::test_no_text_makes_a_look_at_it_long",),
    ),
)
"""All of them; the gate runs every one."""
