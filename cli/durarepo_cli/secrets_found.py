"""What ``durarepo verify --secrets`` tells: where something lies that today's rules leave out.

Paths, rules and numbers of manifests; a value is not known here. Source: spec/cli.md 4 (verify).
Start at `tell_secrets`.
"""

from durarepo.core.errors import DurarepoError, IntegrityError, PolicyRefusedError
from durarepo.operations.verify_secrets import SecretsVerified, StoredSecret
from durarepo_cli.exits import Exit, exit_of, first_of
from durarepo_cli.output import Output, counted, path_fields, quoted, ranges, size_text

_WHAT_TO_DO = (
    "change each password, key or token at its issuer: what is stored has left this computer",
    "leave the file out of the next snapshot: durarepo exclude explain PATH says how it is judged",
    "what is stored cannot be taken back here; the owner retires these manifests at the store",
)


def tell_secrets(output: Output, found: SecretsVerified) -> None:
    """Tell what was found, and set the exit code.

    Damage is told by its own code; contents that nobody may decrypt any more make 1.
    """
    error = _refusal(found)
    output.code = first_of(
        (
            Exit.DONE if error is None else exit_of(error),
            Exit.OMISSIONS if found.unscanned else Exit.DONE,
        )
    )
    output.tell(_message(found), _lines(found), error)


def _refusal(found: SecretsVerified) -> DurarepoError | None:
    if found.damage is not None:
        return IntegrityError(
            "verify",
            f"contents and listings that could not be read: {found.unreadable}",
            hint="see what is damaged with: durarepo verify --data",
        )
    if found.found:
        return PolicyRefusedError(
            "secrets-stored",
            f"places in stored snapshots that today's rules leave out: {len(found.found)}",
            hint="change what was stored there at its issuer; then see durarepo explain",
        )
    return None


def _message(found: SecretsVerified) -> dict[str, object]:
    return {
        "level": "secrets",
        "head": found.head or None,
        "manifests": found.manifests,
        "contents": found.contents,
        "bytes": found.bytes,
        "unscanned": found.unscanned,
        "unreadable": found.unreadable,
        "policy": found.policy,
        "engine": found.engine,
        "secrets": [_secret(one) for one in found.found],
    }


def _secret(one: StoredSecret) -> dict[str, object]:
    return {
        **path_fields("path", one.path),
        "path_id": one.path_id,
        "rule": one.rule,
        "stage": str(one.stage),
        "sequences": list(one.sequences),
    }


def _lines(found: SecretsVerified) -> list[str]:
    head = f"head {found.head}" if found.head else "nothing kept yet"
    lines = [
        f"{_verdict(found)}: {head}",
        f"  manifests  {found.manifests}",
        f"  contents   {found.contents}, {size_text(found.bytes)} read",
    ]
    if found.unscanned:
        what = counted(found.unscanned, "content")
        lines.append(f"  not scanned: {what} of expired manifests, which nothing may decrypt")
        lines.append("  a snapshot made now pins what is still there; then look again")
    for one in found.found:
        place = f"path {one.path_id}" if one.path is None else quoted(one.path)
        lines.append(f"  {one.rule} ({one.stage})  {place}")
        lines.append(f"    in {_manifests(one.sequences)}")
    if found.found:
        lines += [f"  {line}" for line in _WHAT_TO_DO]
    return lines


def _verdict(found: SecretsVerified) -> str:
    """Return what may be said: what was not looked at may hold anything."""
    if found.found:
        return "secrets found"
    if found.unscanned or found.unreadable:
        return "not all was scanned, and no secrets found in the rest"
    return "no secrets found"


def _manifests(numbers: tuple[int, ...]) -> str:
    return f"{'manifest' if len(numbers) == 1 else 'manifests'} {ranges(numbers)}"
