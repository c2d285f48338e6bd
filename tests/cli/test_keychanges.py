"""Changes of keys as a person and a script see them: messages, exit codes, files, no secrets."""

import os
import shutil
from pathlib import Path

import pytest

from durarepo.crypto import primitives
from durarepo.format.keytext import encode_key
from durarepo_cli.keychanges import COPY_KEYS, NO_SNAPSHOT
from tests.cli.harness import Cli
from tests.cli.schema import check


def no_secret(cli: Cli, *texts: bytes) -> None:
    """Check that nothing that was printed or drafted holds a key from the keys folder."""
    for path in cli.keys().iterdir():
        if path.suffix in {".key", ".next"}:
            word = path.read_bytes().split()[1]
            assert not any(word in text for text in texts), path.name


@pytest.fixture
def begun(cli: Cli) -> Cli:
    """Return a stream with one manifest, the owner's key with the others."""
    root = cli.home / "agent" / "notes"
    root.mkdir()
    (root / "notes").write_text("first")
    assert cli.run("init", "--stream", "notes", "--root", str(root)).code == 0
    assert cli.run("snapshot").code == 0
    return cli


def take_away(cli: Cli) -> Path:
    """Take the owner's key to where it belongs."""
    away = cli.home / "away"
    away.mkdir(mode=0o700)
    (cli.keys() / "owner.key").rename(away / "owner.key")
    return away / "owner.key"


@pytest.mark.parametrize(
    "call", [("rotate-signing",), ("rotate-naming",), ("add-recipient", "KEY")]
)
def test_with_the_owner_s_key_at_hand_a_change_is_in_force_at_once(
    begun: Cli, call: tuple[str, ...]
) -> None:
    """The first machine of a person alone needs no ceremony."""
    key = encode_key("recipient", primitives.recipient_of(primitives.random_key()))

    ran = begun.run("keys", *(key if word == "KEY" else word for word in call), "--json")

    told = ran.json()
    assert ran.code == 0
    check("registry-change", told)
    assert (told["version"], told["draft"]) == (2, None)
    assert begun.run("snapshot").code == 0
    assert begun.run("verify", "--data").code == 0
    no_secret(begun, ran.stdout, ran.stderr)


def test_without_it_the_change_waits_and_the_owner_signs_by_file(begun: Cli) -> None:
    """The owner's machine has no repository; it is given a file and gives one back."""
    owner = take_away(begun)

    waiting = begun.run("keys", "rotate-signing", "--json")

    told = waiting.json()
    assert waiting.code == 12
    assert waiting.error()["code"] == "keys.owner-absent"
    draft = Path(str(told["draft"]).replace("/var/lib", str(begun.home / "var")))
    no_secret(begun, waiting.stdout, waiting.stderr, draft.read_bytes())
    elsewhere = Cli(begun.home / "elsewhere")
    carried = elsewhere.home / "draft"
    carried.write_bytes(draft.read_bytes())

    looked = elsewhere.run("registry", "sign", str(carried), "--json")
    signed = elsewhere.run("registry", "sign", str(carried), "--owner", str(owner), "--json")
    admitted = begun.run("registry", "admit", f"{carried}.signed", "--json")

    again = elsewhere.run("registry", "sign", str(carried), "--owner", str(owner), "--json")
    wrong = elsewhere.run("registry", "sign", str(carried), "--owner", str(carried), "--json")

    assert again.error()["code"] == "config.exists"
    assert "--out" not in str(again.error()["hint"])
    assert str(wrong.error()["code"]).startswith("keys.")
    for ran in (looked, signed):
        assert ran.code == 0
        check("registry-sign", ran.json())
    assert looked.json()["signed"] is None
    assert looked.json()["changes"] == signed.json()["changes"]
    assert "epoch 2 begins with manifest 2" in signed.out
    check("registry-change", admitted.json())
    assert (admitted.code, admitted.json()["epoch"]) == (0, 2)
    assert begun.run("registry", "admit", f"{carried}.signed").code == 0
    assert begun.run("snapshot").code == 0
    assert begun.run("log", "--json").items()[0]["epoch"] == 2
    no_secret(begun, Path(f"{carried}.signed").read_bytes(), signed.stdout, admitted.stdout)


def test_a_draft_on_purpose_is_no_failure(begun: Cli) -> None:
    """`--out` asks for a draft and gets one."""
    out = begun.home / "draft"

    for call in (["keys", "rotate-naming"], ["registry", "draft"]):
        ran = begun.run(*call, "--out", str(out), "--json")
        assert ran.code == 0
        check("registry-change", ran.json())
        assert ran.json()["draft"] == str(out)
        again = begun.run(*call, "--out", str(out))
        assert again.code == 2
        out.unlink()
    assert begun.run("registry", "show", "--json").json()["version"] == 1


def test_a_new_signer_s_public_key_goes_into_a_draft(begun: Cli) -> None:
    """The secret half never leaves the computer it was made on."""
    out = begun.home / "new.signer"

    made = begun.run("keys", "new-signer", "--role", "evidence", "--out", str(out), "--json")
    draft = begun.run(
        "registry", "draft", "--signer", str(out), "--out", str(begun.home / "draft"), "--json"
    )

    check("new-signer", made.json())
    assert (made.code, draft.code) == (0, 0)
    assert any(str(made.json()["id"]) in str(one) for one in draft.json()["changes"])  # type: ignore[attr-defined]
    listed = begun.run("keys", "list", "--json").json()["keys"]
    assert isinstance(listed, list)
    assert any(row["kind"].endswith("-waiting") for row in listed)
    no_secret(begun, made.stdout, out.read_bytes(), (begun.home / "draft").read_bytes())


def test_a_recipient_is_added_by_what_another_computer_prints(begun: Cli) -> None:
    """A key that one has to put together from files by hand is not handed over at all."""
    other = Cli(begun.home / "other")
    (other.home / "work").mkdir()
    made = other.run("init", "--stream", "work", "--root", str(other.home / "work"))
    assert made.code == 0
    listed = other.run("keys", "list", "--json").json()
    check("keys", listed)
    text = str(listed["recipient"])
    assert text in other.run("keys", "list").out
    assert begun.run("keys", "list", "--json").json()["recipient"] != text

    line = begun.run("keys", "add-recipient", f"data heir {text}", "--json")
    again = begun.run("keys", "add-recipient", text, "--json")
    several = begun.run("keys", "add-recipient", str(begun.keys() / "recipients"), "--json")

    assert line.json()["version"] == 2
    assert (again.code, again.error()["code"]) == (2, "config.recipients")
    assert several.error()["code"] == "keys.malformed"
    status = begun.run("status", "--json").json()
    check("status", status)
    assert (status["registry_version"], status["recipients"]) == (2, 3)


def test_status_lists_what_a_change_of_keys_has_left_open(begun: Cli) -> None:
    """A draft of last year that nobody remembers would be carried to the owner, and refused."""
    owner = take_away(begun)
    for _ in range(2):
        assert begun.run("keys", "rotate-naming", "--json").code == 12
    waiting = begun.run("status", "--json").json()
    draft = waiting["drafts"][0]["path"]  # type: ignore[index]
    carried = begun.home / "carried"
    carried.write_bytes(Path(str(draft).replace("/var/lib", str(begun.home / "var"))).read_bytes())
    assert begun.run("registry", "sign", str(carried), "--owner", str(owner)).code == 0
    assert begun.run("registry", "admit", f"{carried}.signed").code == 0

    told = begun.run("status", "--json").json()

    check("status", told)
    assert [one["stale"] for one in waiting["drafts"]] == [False, False]  # type: ignore[attr-defined]
    assert len(waiting["waiting_keys"]) == 2  # type: ignore[arg-type]
    assert [one["stale"] for one in told["drafts"]] == [True, True]  # type: ignore[attr-defined]
    assert len(told["waiting_keys"]) == 1  # type: ignore[arg-type]
    assert "stale" in begun.run("status").out


def test_status_tells_that_the_card_has_become_old(begun: Cli) -> None:
    """A card that opens yesterday's keys is found out on the worst day."""
    assert "card" not in begun.run("status", "--json").json()["todo"]  # type: ignore[operator]

    begun.run("keys", "rotate-naming")

    told = begun.run("status", "--json").json()
    check("status", told)
    assert "card" in told["todo"]  # type: ignore[operator]
    assert told["recipients_share"] == 1.0


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (["registry", "admit", "FILE"], "config.draft"),
        (["registry", "sign", "FILE"], "config.draft"),
        (["registry", "admit", "nowhere"], "config.usage"),
        (["keys", "retire-recipient", "0123456789"], "config.recipients"),
        (["keys", "add-recipient", "nonsense"], "keys.malformed"),
        (["registry", "draft", "--revoke", "nobody", "--out", "new"], "config.revoke"),
    ],
)
def test_what_is_no_change_is_refused_with_a_code(begun: Cli, call: list[str], code: str) -> None:
    """A slip changes nothing and is told by name."""
    (begun.home / "FILE").write_text("nothing of the kind")

    ran = begun.run(*call, "--json")

    assert ran.error()["code"] == code
    assert ran.code in {2, 12}
    assert begun.run("registry", "show", "--json").json()["version"] == 1


def test_a_draft_that_a_snapshot_makes_void_says_so(begun: Cli) -> None:
    """A timer between draft and admit costs the owner a second journey."""
    said = begun.run("keys", "rotate-signing", "--out", "next.draft")
    renewal = begun.run("registry", "draft", "--out", "renewal.draft")
    in_force = begun.run("keys", "rotate-signing")

    assert NO_SNAPSHOT in said.err
    assert NO_SNAPSHOT not in renewal.err + in_force.err
    assert COPY_KEYS in in_force.err
    assert COPY_KEYS not in said.err + renewal.err


def test_a_second_reader_reads_with_what_the_readme_tells_to_bring(
    begun: Cli, tmp_path: Path
) -> None:
    """Nobody finds out by trying which of ten files another computer needs."""
    other = Cli(tmp_path / "other")
    (other.home / "empty").mkdir()
    assert other.run("init", "--stream", "reader", "--root", "empty").code == 0
    text = str(other.run("keys", "list", "--json").json()["recipient"])
    assert begun.run("keys", "rotate-naming").code == 0
    assert begun.run("snapshot").code == 0
    assert begun.run("keys", "add-recipient", text).code == 0
    assert begun.run("snapshot").code == 0

    shutil.copytree(begun.repository(), other.repository())
    other.keys().mkdir(mode=0o700)
    for path in (
        *(begun.keys() / name for name in ("locator.key", "owner.pub", "naming.key")),
        *begun.keys().glob("naming-*.key"),
        other.keys("reader") / "identity.key",
    ):
        shutil.copy2(path, other.keys())
    # As root the program sees the folder of the test at /var/lib.
    place = "/var/lib/durarepo/notes" if os.geteuid() == 0 else str(other.repository())

    assert other.run("--repo", place, "verify").code == 0
    assert other.run("--repo", place, "cat", "latest", "notes").stdout == b"first"
    assert len(other.run("--repo", place, "log", "--json").items()) == 3


def test_a_new_machine_goes_on_with_a_stream_whose_root_lies_elsewhere(
    begun: Cli, tmp_path: Path
) -> None:
    """After a loss the folders have another home, and the chain has to go on in it."""
    other = Cli(tmp_path / "other")
    shutil.copytree(begun.repository(), other.repository())
    shutil.copytree(begun.keys(), other.keys())
    root = other.home / "agent" / "notes"
    root.mkdir()
    (root / "notes").write_text("first, brought back")
    settings = other.repository() / "stream.toml"
    settings.write_text(settings.read_text().replace(str(begun.home), str(other.home)))

    taken = other.run("snapshot", "--json")

    assert (taken.code, taken.json()["sequence"]) == (0, 2)
    assert other.run("cat", "2", "notes").stdout == b"first, brought back"
    assert other.run("verify", "--data").code == 0
    assert other.run("status", "--json").json()["overdue"] is False
