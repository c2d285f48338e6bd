"""The operator's patterns: what each leaves out, and what it takes back."""

import pytest

from durarepo.core.errors import ConfigurationError
from durarepo.policy.patterns import RULE_OPERATOR, PatternRule, check_pattern

ROOT = b"/home/agent"


def is_out(path: str, *exclude: str, include: tuple[str, ...] = (), root: bytes = ROOT) -> bool:
    """Return whether the path below the root is left out."""
    whole = (root.rstrip(b"/") + b"/" + path.encode("utf-8", "surrogateescape")).rpartition(b"/")
    rule = PatternRule(root, exclude=exclude, include=include)
    answer = rule(whole[0] or b"/", whole[2])
    assert answer in (None, RULE_OPERATOR)
    return answer is not None


@pytest.mark.parametrize(
    ("pattern", "out", "kept"),
    [
        ("*.log", ["a.log", "x/y/b.log", ".log"], ["a.log.txt", "log", "a.LOG"]),
        ("cache", ["cache", "x/cache"], ["caches", "x/cache.d"]),
        ("cache/", ["cache", "x/cache"], ["mycache"]),
        ("?.txt", ["a.txt", "x/b.txt"], ["ab.txt", ".txt"]),
        ("data/*.bin", ["data/a.bin"], ["data/x/a.bin", "x/data/a.bin", "a.bin"]),
        ("data/**", ["data/a", "data/x/y"], ["data", "database"]),
        ("**/tmp/x", ["tmp/x", "a/tmp/x", "a/b/tmp/x"], ["atmp/x", "tmp/y"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/bc", "xa/b"]),
        ("*/x", ["a/x"], ["x", "a/b/x"]),
        ("./a2", ["a2"], ["x/a2"]),
        ("/home/agent/a2", ["a2"], ["x/a2", "home/agent/a2"]),
        ("a.b", ["a.b"], ["aXb"]),
        ("a+(b)[c]", ["a+(b)[c]"], ["aab", "a+(b)c"]),
        ("\n*", ["\nx", "a/\n"], ["x\n"]),
    ],
)
def test_a_pattern_leaves_out_what_it_describes_and_nothing_else(
    pattern: str, out: list[str], kept: list[str]
) -> None:
    """Too little leaves a secret in, too much leaves work out."""
    for path in out:
        assert is_out(path, pattern), path
    for path in kept:
        assert not is_out(path, pattern), path


@pytest.mark.parametrize("root", [b"/", b"/home", b"/home/agent/", ROOT])
def test_a_pattern_means_the_same_below_every_root(root: bytes) -> None:
    """Names right below / once had a slash before them that others had not."""
    assert is_out("a/x", "*/x", root=root)
    assert not is_out("x", "*/x", root=root)
    assert is_out("x", "**/x", root=root)
    assert is_out("x", "x", root=root)


def test_what_is_included_stays_although_it_is_excluded() -> None:
    """A rule with an exception is how people think of folders."""
    assert is_out("a.log", "*.log", include=("keep.log",))
    assert not is_out("keep.log", "*.log", include=("keep.log",))
    assert not is_out("x/a.log", "*.log", include=("x/*",))
    assert is_out("y/a.log", "*.log", include=("x/*",))


def test_without_a_pattern_nothing_is_left_out() -> None:
    """Includes alone leave nothing out."""
    assert not is_out("a", include=("a",))
    assert not is_out("a")
    assert not is_out("a", "", "/")


def test_names_that_are_no_text_are_compared_all_the_same() -> None:
    """A name of any bytes can be on a disk."""
    assert is_out("\udcff.log", "*.log")
    assert not is_out("\udcff", "*.log")


@pytest.mark.parametrize(
    "pattern", ["", "/", "./", "[", "a[b", "/home/agent", "/home/other/x", "a/../b", "a//b"]
)
def test_a_pattern_that_can_never_fit_is_refused(pattern: str) -> None:
    """It would be accepted, and what it was meant for would be in every snapshot."""
    with pytest.raises(ConfigurationError) as caught:
        check_pattern(ROOT, pattern)
    assert caught.value.code == "config.invalid"


@pytest.mark.parametrize("pattern", ["*.log", "cache/", "a[b]", "./x", "/home/agent/x", "**/x"])
def test_a_pattern_that_can_fit_is_accepted(pattern: str) -> None:
    """A refusal of what is right would stop all snapshots of the stream."""
    check_pattern(ROOT, pattern)
