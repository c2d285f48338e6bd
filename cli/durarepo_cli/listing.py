"""How a path of a manifest is printed: one line for people, one object for scripts.

Source: spec/cli.md 4. Start at `tell_path`.
"""

import stat
from typing import TYPE_CHECKING

from durarepo_cli.output import Output, mtime_text, path_fields, quoted

if TYPE_CHECKING:
    from durarepo.operations.reading import ListedPath

_TYPE_BITS = {
    "file": stat.S_IFREG,
    "directory": stat.S_IFDIR,
    "symlink": stat.S_IFLNK,
    "fifo": stat.S_IFIFO,
    "socket": stat.S_IFSOCK,
    "char-device": stat.S_IFCHR,
    "block-device": stat.S_IFBLK,
}


def tell_path(output: Output, row: "ListedPath") -> None:
    """Print one path of a manifest."""
    if output.is_json:
        output.item(fields_of(row))
        return
    mode = stat.filemode(_TYPE_BITS.get(row.type, 0) | row.mode)
    name = quoted(row.path)
    if row.target is not None:
        name += f" -> {quoted(row.target)}"
    when = (mtime_text(row.mtime_ns) or "-")[:19]
    output.line(f"{mode} {row.size:>12} {when:<19}Z {name}")


def fields_of(row: "ListedPath") -> dict[str, object]:
    """Return one path of a manifest as the fields of its message."""
    return {
        **path_fields("path", row.path),
        "type": row.type,
        "size": row.size,
        "mtime": mtime_text(row.mtime_ns),
        "sha256": None if row.sha256 is None else row.sha256.hex(),
        "mode": f"{row.mode:04o}",
        "uid": row.uid,
        "gid": row.gid,
        **path_fields("target", row.target),
    }
