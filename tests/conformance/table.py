"""The requirements of this stage: what each asks for, where it is kept, which tests prove it.

The one source of spec/conformance.md: ``python -m tests.conformance.table > spec/conformance.md``.
Which mutation makes a row's test fail is told by tests/mutations/catalogue.py.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation, function_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One requirement. ``tests`` are file::name below tests/, without those of its mutations."""

    id: str
    clause: str
    words: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    later: str = ""


_CHECKOUT = "unit/operations/test_checkout.py"
_SNAPSHOT = "unit/operations/test_snapshot_unchanged.py"
_FILES = "unit/operations/test_snapshot_files.py"
_READER = "unit/repository/test_reader.py"
_SCRATCH = "unit/repository/test_scratch.py"
_HOSTILE = "adversary/test_hostile_manifests.py"
_EXCLUSION = "unit/operations/test_snapshot_exclusion.py"
_VECTORS = "vectors/test_vectors.py"

ROWS = (
    Row(
        id="A2a",
        clause="10.5.2",
        words="No credential, key, token, cookie, password or environment file enters: not in "
        "objects, names, logs, state or output, and not as a hash",
        modules=("durarepo/policy/decide.py", "durarepo/repository/exclusion.py"),
        tests=(
            "policy/test_canaries.py::test_no_secret_is_stored_written_or_said",
            "policy/test_canaries.py::test_no_secret_is_in_an_argument_or_an_environment",
            "policy/test_cases.py::test_the_labelled_cases_are_decided_as_their_strength_demands",
            "policy/test_cases.py::test_fresh_instances_are_decided_right",
            f"{_EXCLUSION}::test_logins_are_taken_out_of_a_database_and_counted",
            f"{_EXCLUSION}::test_an_attribute_that_holds_a_secret_is_left_out",
        ),
        later="a mirror, in which to look as well, comes later",
    ),
    Row(
        id="A2b",
        clause="10.5.2",
        words="A file with the header of a private key stays out, wherever the header stands",
        modules=("durarepo/policy/scanning.py", "durarepo/repository/largefiles.py"),
        tests=(
            f"{_EXCLUSION}::test_a_file_with_a_key_header_is_left_out_wherever_it_stands",
            f"{_EXCLUSION}::test_a_hole_stays_a_hole_and_a_secret_behind_it_is_found",
            "policy/test_laws.py::test_a_header_across_the_edge_of_a_window_is_found",
            "policy/test_laws.py::"
            "test_a_header_is_found_at_any_offset_in_any_encoding_however_it_is_read",
        ),
    ),
    Row(
        id="A2c",
        clause="10.5.2",
        words="What a path rule leaves out is never opened; what is judged by its bytes reaches "
        "the chunker only after the judgement",
        modules=("durarepo/source/pathjudge.py", "durarepo/repository/contents.py"),
        tests=(
            f"{_EXCLUSION}::test_what_a_path_rule_leaves_out_is_never_opened",
            f"{_EXCLUSION}::test_a_file_that_changes_between_scan_and_cut_is_not_stored",
            "policy/test_canaries.py::test_nothing_that_a_path_rule_leaves_out_is_opened",
        ),
    ),
    Row(
        id="A2d",
        clause="10.5.2",
        words="Caches, virtual environments and dependency folders stay out; folders that merely "
        "have such a name stay in",
        modules=(
            "durarepo/policy/path_table.py",
            "durarepo/source/pathjudge.py",
            "durarepo/repository/markings.py",
        ),
        tests=(
            "policy/test_cases.py::test_fresh_instances_are_decided_right",
            "policy/test_kept.py::test_real_sources_and_documents_stay",
            f"{_EXCLUSION}::test_a_marked_folder_is_told_of_when_it_is_new_or_holds_work",
            f"{_EXCLUSION}::test_a_marked_folder_is_told_of_again_when_it_grows_by_new_names",
        ),
    ),
    Row(
        id="A2f",
        clause="10.5.2",
        words="Where a key lies may be said, and nothing else of it; a name that was left out "
        "stands in the sealed ledger alone",
        modules=("durarepo/repository/exclusion.py", "durarepo/local/secretfiles.py"),
        tests=(
            "policy/test_canaries.py::"
            "test_names_that_were_left_out_stand_in_the_sealed_ledger_alone",
            f"{_EXCLUSION}::test_a_name_that_holds_a_secret_is_told_by_a_short_id_alone",
        ),
    ),
    Row(
        id="A2e",
        clause="10.5.2",
        words="No command shows a key: not in arguments, output, logs, state, errors or tracebacks",
        modules=("durarepo/core/secret.py", "cli/durarepo_cli/main.py"),
        tests=(
            "cli/test_secrets.py::test_no_command_shows_a_key",
            "cli/test_secrets.py::test_no_key_reaches_an_argument_or_the_environment",
            "cli/test_secrets.py::test_a_bug_between_keys_shows_none",
            "cli/test_secrets.py::test_an_error_about_a_key_does_not_quote_it",
        ),
    ),
    Row(
        id="A3a",
        clause="10.5.3.1",
        words="One signed, encrypted manifest a stream and a day; a second automatic run, or one "
        "beside another, makes none",
        modules=("durarepo/operations/snapshot.py", "durarepo/local/lock.py"),
        tests=(
            "conformance/test_rows.py::test_of_two_runs_at_once_one_makes_a_manifest",
            "cli/test_commands.py::test_a_second_run_is_told_that_the_first_holds_the_lock",
            "unit/local/test_lock.py::test_of_two_contenders_for_a_dead_lock_one_wins",
        ),
        later="`nightly`, which calls it, comes later",
    ),
    Row(
        id="A3b",
        clause="10.5.3.1",
        words="A manifest lives 24 hours: a reader refuses any other life, and no setting asks "
        "for one",
        modules=("durarepo/policy/freshness.py", "durarepo/local/configuration.py"),
        tests=("conformance/test_rows.py::test_a_manifest_expires_a_day_after_it_was_issued",),
    ),
    Row(
        id="A3c",
        clause="10.5.3.2",
        words="No object is longer than the store takes, and each is of a size class",
        modules=("durarepo/repository/writer.py", "durarepo/format/layout.py"),
        tests=(f"{_FILES}::test_a_file_of_each_size_about_the_borders_comes_back",),
    ),
    Row(
        id="A3d",
        clause="10.5.3.2",
        words="Content is compressed, and sealed so that each recipient alone opens it and "
        "nobody else does",
        modules=("durarepo/sealing.py", "durarepo/chunking/compression.py"),
        tests=(
            "unit/test_sealing.py::test_a_pack_stays_shut_for_others_and_elsewhere",
            "interop/test_minireader.py::test_an_identity_that_is_no_recipient_opens_nothing",
        ),
    ),
    Row(
        id="A3e",
        clause="10.5.3.2",
        words="Chunks are named under a key of the stream: stored once within it, and no name "
        "tells what the content is",
        modules=("durarepo/sealing.py", "durarepo/repository/chunks.py"),
        tests=("unit/test_sealing.py::test_ids_tell_kinds_apart",),
    ),
    Row(
        id="A3f",
        clause="10.5.3.2",
        words="Every chunk is pinned by the digest of its stored bytes; altered or exchanged "
        "bytes are refused with pack and file",
        modules=("durarepo/repository/openpack.py", "durarepo/sealing.py"),
        tests=(
            f"{_CHECKOUT}::test_a_damaged_pack_names_the_file_that_needs_it",
            f"{_READER}::test_a_changed_index_or_trailer_is_refused",
            "hostile/test_damage.py"
            "::test_every_damage_to_a_pack_is_found_and_named_down_to_the_file",
        ),
    ),
    Row(
        id="A3g",
        clause="10.5.3.2",
        words="A further snapshot stores only what is new; of unchanged data one manifest",
        modules=("durarepo/repository/treekeeper.py", "durarepo/repository/chunks.py"),
        tests=(
            "conformance/test_rows.py::test_a_day_without_changes_costs_one_manifest",
            f"{_SNAPSHOT}::test_unchanged_files_are_not_opened_and_folders_not_encoded",
            f"{_SNAPSHOT}::test_appending_to_a_large_file_writes_little_more_than_was_added",
        ),
    ),
    Row(
        id="A4d",
        clause="10.5.4",
        words="A remote is spoken to over HTTPS with its certificate verified; no flag, variable "
        "or setting turns that off",
        modules=("durarepo/store/tls.py", "durarepo/store/transport.py"),
        tests=(
            "unit/store/test_tls.py::test_a_good_certificate_of_the_named_ca_is_accepted",
            "unit/store/test_tls.py::test_a_named_ca_is_the_only_one",
            "unit/store/test_remoteurl.py"
            "::test_any_other_address_is_refused_without_being_repeated",
            "unit/store/test_https.py::test_a_server_that_speaks_no_tls_gets_nothing",
            "unit/local/test_remotes.py::test_a_ca_file_that_is_gone_does_not_mean_any_ca",
            "cli/test_remote.py::test_a_remote_that_cannot_be_used_is_told_apart",
        ),
    ),
    Row(
        id="A4e",
        clause="10.5.4",
        words="Names of objects are opaque, and no request carries anything that describes",
        modules=("durarepo/store/https.py", "durarepo/store/transport.py"),
        tests=(
            "unit/store/test_https.py::test_every_put_is_conditional_and_carries_its_digest",
            "cli/test_remote.py::test_nothing_of_the_stream_is_sent_by_a_check",
        ),
        later="no command sends objects of a stream yet",
    ),
    Row(
        id="A4f",
        clause="10.5.4",
        words="Nothing is deleted or overwritten at a remote, and what is there counts as stored "
        "only after it was compared",
        modules=(
            "durarepo/store/port.py",
            "durarepo/store/https.py",
            "durarepo/store/servercheck.py",
            "durarepo/mirror/app.py",
        ),
        tests=(
            "store_contract/test_contract.py"
            "::test_other_bytes_under_a_taken_name_are_refused_and_the_first_stay",
            "store_contract/test_contract.py::test_store_offers_no_way_to_delete_or_overwrite",
            "store_contract/test_mirror.py"
            "::test_no_condition_and_no_field_lets_anything_be_replaced",
            "store_contract/test_mirror.py::test_nothing_that_was_answered_is_lost_by_a_kill",
            "store_contract/test_capabilities.py"
            "::test_only_objects_of_the_check_itself_are_touched",
            "unit/store/test_https.py"
            "::test_a_connection_that_is_cut_anywhere_ends_well_or_with_an_alarm",
            "architecture/test_effects.py::test_no_module_but_two_removes_or_replaces_a_file",
        ),
        later="no command sends objects of a stream yet",
    ),
    Row(
        id="A5a",
        clause="10.5.5",
        words="Keys lie outside whatever is backed up, by any link or mount; asked before a key "
        "is read",
        modules=("durarepo/local/placement.py",),
        tests=(
            "unit/local/test_placement.py::test_keys_that_a_mount_shows_in_a_root_are_refused",
            "unit/local/test_placement.py::test_nothing_is_opened_for_reading_before_the_refusal",
        ),
    ),
    Row(
        id="A5b",
        clause="10.5.5",
        words="Only the owner can read or exchange a key file: mode, owner, folders, access lists",
        modules=("durarepo/local/secretfiles.py",),
        tests=(
            "unit/local/test_secretfiles.py::test_unprivileged_user_reads_own_keys_and_is_told_of_others",
            "cli/test_calls.py::test_a_key_that_others_may_read_ends_with_12",
        ),
    ),
    Row(
        id="A5d",
        clause="10.5.5",
        words="The crypto package is the pinned one, native, and compared before it is imported",
        modules=("durarepo/local/cryptopin.py",),
        tests=(
            "unit/local/test_cryptopin.py::test_a_pure_python_shadow_is_refused_and_never_executed",
            "unit/local/test_cryptopin.py::test_users_and_gates_install_exactly_the_pinned_version",
            "cli/test_startup.py::test_the_crypto_package_is_checked_before_it_is_imported",
        ),
    ),
    Row(
        id="A5e",
        clause="10.5.5",
        words="No stand-in for crypto is installed, and no switch selects one",
        modules=("pyproject.toml", "durarepo/crypto/primitives.py"),
        tests=(
            "architecture/test_wheel.py::test_the_wheel_holds_no_double",
            "architecture/test_crypto_doors.py::test_no_flag_and_no_name_chooses_an_implementation",
        ),
    ),
    Row(
        id="A6a",
        clause="10.5.6",
        words="Registry, signature, chain, age and digests are checked before any pack is touched",
        modules=("durarepo/ingest.py", "durarepo/repository/livetime.py"),
        tests=("conformance/test_rows.py::test_a_good_chain_lets_packs_be_read",),
    ),
    Row(
        id="A6b",
        clause="10.5.6",
        words="A signer counts only if the owner's registry names it, for this stream and role, "
        "and has not revoked it",
        modules=("durarepo/ingest.py", "durarepo/format/registry.py"),
        tests=(
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[manifest-signer-of-no-epoch]",
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[registry-other-owner]",
            f"{_CHECKOUT}::test_a_signer_revoked_while_the_restore_runs_stops_it",
            "unit/operations/test_revocation.py"
            "::test_after_the_revocation_the_thief_s_manifests_are_gone_and_the_good_ones_restorable",
            "unit/operations/test_revocation.py"
            "::test_what_the_thief_writes_after_the_revocation_counts_for_nothing",
            "unit/operations/test_rotation.py::test_the_old_signing_key_writes_nothing_more",
            "unit/operations/test_registry.py::test_another_owner_s_registry_is_refused",
        ),
    ),
    Row(
        id="A6c",
        clause="10.5.6",
        words="Both signatures are good, over type, statement and header; any altered bit is "
        "refused",
        modules=("durarepo/sealing.py", "durarepo/crypto/primitives.py"),
        tests=(
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[manifest-ed25519-wrong]",
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[manifest-signed-without-type]",
            "hostile/test_damage.py::test_every_damage_to_an_envelope_or_a_registry_is_found",
        ),
    ),
    Row(
        id="A6d",
        clause="10.5.6",
        words="Gap, fork, older head, wrong link and a store that was set back are told from each "
        "other, by a high-water kept outside the store",
        modules=("durarepo/ingest.py", "durarepo/repository/chain.py"),
        tests=(
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[chain-with-a-gap]",
            f"{_VECTORS}::test_durarepo_answers_as_the_vector_says[chain-forked]",
            "unit/operations/test_verify.py::test_a_head_that_was_seen_and_is_gone_is_a_rollback",
            "unit/operations/test_registry.py"
            "::test_an_older_registry_is_refused_once_a_newer_one_was_seen",
        ),
    ),
    Row(
        id="A6e",
        clause="10.5.6",
        words="A chunk's stored bytes are compared with their digest before they are decrypted",
        modules=("durarepo/sealing.py",),
        tests=(
            "architecture/test_crypto_doors.py::test_only_four_functions_decrypt",
            "architecture/test_crypto_doors.py::test_checked_values_come_only_from_their_checks",
        ),
    ),
    Row(
        id="A6f",
        clause="10.5.6",
        words="A file keeps its name only if its SHA-256 is the signed one",
        modules=("durarepo/repository/pieces.py", "durarepo/repository/restorer.py"),
        tests=(
            f"{_SCRATCH}"
            "::test_what_the_content_raises_passes_and_the_file_is_not_part_of_the_result",
            "unit/operations/test_reading.py"
            "::test_cat_gives_nothing_of_a_file_that_is_not_the_signed_one",
        ),
    ),
    Row(
        id="A6h",
        clause="10.5.6",
        words="Age and revocation are asked of the live time before ingest, before data and "
        "before the end; a lost or expired registry and a clock that runs back stop a restore",
        modules=("durarepo/policy/freshness.py", "durarepo/repository/livetime.py"),
        tests=(
            f"{_CHECKOUT}::test_a_registry_out_of_its_time_stops_the_restore",
            f"{_CHECKOUT}::test_a_registry_that_is_lost_while_the_restore_runs_stops_it",
            f"{_CHECKOUT}::test_a_clock_that_runs_backwards_stops_the_restore",
        ),
        later="the clock's high-water moves only when a remote tells the time, which comes later",
    ),
    Row(
        id="A6i",
        clause="10.5.6",
        words="An expired manifest is restored only after a human has typed stream and date at a "
        "terminal, and a warning was logged",
        modules=("durarepo/operations/archival.py", "cli/durarepo_cli/confirm.py"),
        tests=(
            "cli/test_confirm.py::test_the_right_words_at_a_terminal_restore",
            "cli/test_confirm.py::test_a_machine_of_ci_has_no_human",
            "cli/test_confirm.py::test_no_flag_answers",
            "unit/operations/test_checkout_archival.py"
            "::test_one_warning_stands_in_the_audit_log_before_the_first_frame",
        ),
    ),
    Row(
        id="A6j",
        clause="10.5.6",
        words="Nothing that runs by itself can reach that way",
        modules=("pyproject.toml", "durarepo/operations/archival.py"),
        tests=(
            "architecture/test_floors.py::test_a_planted_breach_is_reported",
            f"{_CHECKOUT}::test_an_expired_manifest_is_refused_with_the_archival_command",
            "cli/test_age.py::test_what_gives_out_data_refuses_an_expired_manifest",
        ),
    ),
    Row(
        id="E2",
        clause="E2",
        words="A hash of each file, of each set with paths, sizes and order, and of the list of "
        "components; any difference is refused and named",
        modules=("durarepo/format/tree.py", "durarepo/repository/restorer.py"),
        tests=(
            "unit/format/test_tree.py::test_the_set_hash_is_as_the_specification_says",
            f"{_CHECKOUT}::test_a_database_that_is_not_the_one_of_its_component_is_refused",
            "unit/operations/test_verify.py"
            "::test_a_component_that_is_not_the_listed_files_is_found",
        ),
    ),
    Row(
        id="E18",
        clause="E18",
        words="Mode and time come back exactly; set-id bits and capabilities only when asked for",
        modules=("durarepo/repository/scratch_metadata.py", "durarepo/source/metadata.py"),
        tests=(
            f"{_FILES}::test_metadata_is_kept_to_the_nanosecond",
            f"{_CHECKOUT}::test_everything_comes_back_as_it_was",
            "interop/test_scratch_tools.py::test_a_restore_as_root_leaves_rsync_nothing_to_change",
            "interop/test_scratch_tools.py"
            "::test_a_restore_as_an_unprivileged_user_leaves_rsync_nothing_to_change",
        ),
    ),
    Row(
        id="E20",
        clause="E20",
        words="A signed and hostile manifest writes nothing outside the scratch folder",
        modules=("durarepo/format/tree.py", "durarepo/repository/scratch.py"),
        tests=(
            f"{_HOSTILE}::test_a_name_that_is_no_name_is_refused",
            f"{_HOSTILE}::test_a_path_of_more_than_4096_bytes_is_refused",
            f"{_HOSTILE}::test_a_root_below_a_link_of_another_root_is_refused",
            f"{_HOSTILE}::test_a_hard_link_through_a_link_joins_nothing",
        ),
    ),
    Row(
        id="E21",
        clause="E21",
        words="Links and special files are recorded and never followed or opened; a change while "
        "reading is seen",
        modules=("durarepo/source/walk.py", "durarepo/source/reading.py"),
        tests=(
            f"{_FILES}::test_every_type_is_recorded_and_none_but_files_is_opened",
            "unit/source/test_walk.py"
            "::test_symlinks_and_special_files_are_listed_and_never_followed",
            f"{_FILES}::test_a_file_that_changes_in_every_try_is_kept_and_is_an_omission",
        ),
    ),
    Row(
        id="E22",
        clause="E22",
        words="What is sealed opens in its own place only: stream, epoch, compartment and kind; "
        "stored files are private",
        modules=("durarepo/format/layout.py", "durarepo/store/atomic.py"),
        tests=("unit/format/test_layout.py::test_no_two_places_share_what_a_seal_is_bound_to",),
    ),
    Row(
        id="E23",
        clause="E23",
        words="A pack that is cut, reordered, doubled or edited anywhere is refused",
        modules=("durarepo/sealing.py", "durarepo/format/pack.py"),
        tests=(
            "hostile/test_damage.py"
            "::test_every_damage_to_a_pack_is_found_and_named_down_to_the_file",
            "unit/test_sealing.py::test_a_header_that_the_index_does_not_name_is_refused",
            "interop/test_minireader.py::test_no_single_changed_byte_of_any_object_goes_unseen",
        ),
    ),
    Row(
        id="E30",
        clause="E30",
        words="Lists read metadata only",
        modules=("durarepo/operations/log.py", "durarepo/operations/reading.py"),
        tests=(
            "unit/operations/test_reading.py::test_listings_touch_no_pack_that_holds_only_data",
            f"{_READER}::test_listing_without_a_catalogue_reads_no_frame_of_a_data_pack",
        ),
    ),
    Row(
        id="E35",
        clause="E35",
        words="Encoded values are bounded in depth and size and have one encoding; what is deep, "
        "cyclic or huge is refused with a code",
        modules=("durarepo/format/canonical.py", "durarepo/repository/trees.py"),
        tests=(
            "unit/format/test_canonical.py"
            "::test_no_memory_is_taken_for_a_length_that_is_only_declared",
            f"{_HOSTILE}::test_a_directory_that_holds_itself_is_refused",
            f"{_HOSTILE}::test_a_decompression_bomb_is_refused_without_its_memory",
            "hostile/test_parsers.py::test_no_input_takes_more_memory_or_time_than_it_should",
        ),
    ),
    Row(
        id="P1",
        clause="P1",
        words="A live database is copied consistently, with all that was committed before; its "
        "sidecars are never mixed in",
        modules=("durarepo/source/sqlitestate.py",),
        tests=(
            "interop/test_sqlite_capture.py"
            "::test_every_capture_under_a_writer_is_whole_and_holds_what_was_committed",
            "interop/test_sqlite_capture.py"
            "::test_a_live_log_with_checkpoints_off_is_captured_without_touching_main_file_and_log",
        ),
    ),
    Row(
        id="P16",
        clause="P16",
        words="Private staging, flushed files, one rename or link, a flushed folder: after a kill "
        "there is all or nothing",
        modules=("durarepo/store/atomic.py", "durarepo/repository/scratch_staging.py"),
        tests=(
            "crash/test_atomic.py::test_kill_at_every_event_of_put_pack_leaves_whole_packs_or_none",
            f"{_SCRATCH}::test_a_kill_at_any_step_leaves_all_or_nothing_and_the_next_run_cleans_up",
            "unit/local/test_work_kills.py"
            "::test_run_killed_anywhere_is_cleaned_up_and_nothing_else",
        ),
    ),
    Row(
        id="X1",
        clause="X1",
        words="Nothing is called verified that was not opened and compared",
        modules=("durarepo/operations/verify.py", "durarepo/repository/inspection.py"),
        tests=(
            "unit/operations/test_verify.py::test_each_kind_of_damage_to_a_pack_has_its_word",
            "unit/operations/test_verify.py::test_data_are_not_verified_without_an_identity",
            "unit/operations/test_verify.py"
            "::test_a_catalogue_changes_no_answer_whether_whole_or_damaged",
        ),
    ),
    Row(
        id="X2",
        clause="X2",
        words="A root that is missing or unreadable ends the run, and the old manifest stays the "
        "head; errors of source and store never change places",
        modules=("durarepo/operations/snapshot.py", "durarepo/source/opening.py"),
        tests=(
            f"{_SNAPSHOT}::test_a_root_that_is_gone_ends_the_run_and_the_head_stays",
            f"{_SNAPSHOT}::test_an_unreadable_root_ends_the_run",
            f"{_SNAPSHOT}::test_an_empty_mount_point_that_held_files_ends_the_run",
        ),
    ),
    Row(
        id="X6",
        clause="X6",
        words="Nothing is staged in the system's temporary folder; too little room is told before "
        "anything is read",
        modules=("durarepo/local/space.py", "durarepo/local/work.py"),
        tests=(
            "unit/local/test_space.py::test_full_temporary_folder_of_the_system_does_not_matter",
        ),
    ),
)
"""In the order of the requirements."""

_HEAD = """\
# Conformance

One row for each requirement that this version claims to meet, with what proves it.
The rows of AICEP 10.5 have its clause.
*E* and *P* rows name what other backups of agents do, *X* rows what losses have taught.

* *Where* names the modules to read first.
* Each *test* is a file and a name below `tests/`. A part in brackets is one case of it.
* Each *mutation* takes the protection away in a copy of the program.
  The gate runs it, and each test beneath it has to fail ([how](../tests/README.md#mutations)).

This page is generated: `python -m tests.conformance.table > spec/conformance.md`.
What has no row here is not claimed.
"""


def mutations_of(row: Row) -> list[Mutation]:
    """Return the mutations of a row."""
    return [one for one in MUTATIONS if row.id in one.rows]


def proofs_of(row: Row) -> list[str]:
    """Return all tests of a row, those of its mutations first, below tests/."""
    killers = [test.removeprefix("tests/") for one in mutations_of(row) for test in one.tests]
    return list(dict.fromkeys([*killers, *row.tests]))


def page() -> str:
    """Return spec/conformance.md."""
    return "\n".join([_HEAD, *_summary(), *(line for row in ROWS for line in _section(row))])


def _summary() -> Iterator[str]:
    yield "| id | clause | in brief |"
    yield "|---|---|---|"
    for row in ROWS:
        yield f"| [{row.id}](#{row.id.lower()}) | {row.clause} | {row.words} |"
    yield ""


def _section(row: Row) -> Iterator[str]:
    yield f"## {row.id}"
    yield ""
    yield f"{row.words}."
    if row.later:
        yield f"Not in this version: {row.later}."
    yield ""
    yield "* Where: " + ", ".join(f"`{module}`" for module in row.modules)
    killers: list[str] = []
    for one in mutations_of(row):
        yield f"* Mutation `{one.id}`: {one.breaks}"
        for test in one.tests:
            killers.append(test.removeprefix("tests/"))
            yield f"  * `{killers[-1]}`"
    others = [test for test in proofs_of(row) if test not in killers]
    if others:
        yield "* Further tests:"
        yield from (f"  * `{test}`" for test in others)
    yield ""


def files_and_names() -> Iterator[tuple[str, str, str]]:
    """Yield (row, file below tests/, name of the test) for every test of every row."""
    for row in ROWS:
        for test in proofs_of(row):
            file, _, name = function_of(test).partition("::")
            yield row.id, file, name


if __name__ == "__main__":
    sys.stdout.write(page().rstrip("\n") + "\n")
