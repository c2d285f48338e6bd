"""Laws of the scan: any place, any cut, any encoding; and one changed character is no hit."""
# ruff: noqa: S311 - seeds and statements of a test

import base64
import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import HYPERSCAN, RE2, open_engine
from durarepo.policy.scanning import OVERLAP_BYTES, WINDOW_BYTES, Findings
from tests.policy.fresh import LABELS, begin, text

POLICIES = [ContentPolicy(open_engine(name)) for name in (RE2, HYPERSCAN)]
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")

policies = st.sampled_from(POLICIES)
labels = st.sampled_from(LABELS)


def scanned(policy: ContentPolicy, data: bytes, cuts: list[int]) -> Findings:
    """Scan ``data`` in the pieces that ``cuts`` make of it."""
    scan = policy.start_scan()
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, stop in pairwise(bounds):
        scan.feed(data[start:stop])
    return scan.finish()


@settings(deadline=None, max_examples=300)
@given(
    policy=policies,
    label=labels,
    encoding=st.sampled_from(ENCODINGS),
    before=st.binary(max_size=400),
    after=st.binary(max_size=40),
    cuts=st.lists(st.integers(0, 900), max_size=6),
)
def test_a_header_is_found_at_any_offset_in_any_encoding_however_it_is_read(
    policy: ContentPolicy,
    label: str,
    encoding: str,
    before: bytes,
    after: bytes,
    cuts: list[int],
) -> None:
    """A key that straddles a read would be stored (A2b)."""
    data = before + begin(label).encode(encoding) + after

    assert scanned(policy, data, cuts).whole
    assert policy.judge(b"x.bin", data).decision is Decision.EXCLUDE


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.engine)
@pytest.mark.parametrize("edge", [WINDOW_BYTES, 2 * WINDOW_BYTES, OVERLAP_BYTES, 64 * 1024])
def test_a_header_across_the_edge_of_a_window_is_found(policy: ContentPolicy, edge: int) -> None:
    """The windows of the scan have edges of their own."""
    header = begin(LABELS[1]).encode()
    for shift in range(len(header) + 1):
        data = b"." * (edge - shift) + header + b"." * 100

        assert scanned(policy, data, [edge]).whole == {"key-pem"}, shift
        assert scanned(policy, data, list(range(0, edge, edge // 3))).whole == {"key-pem"}, shift


@settings(deadline=None, max_examples=400)
@given(policy=policies, label=labels, data=st.data())
def test_one_changed_character_of_the_fixed_text_is_no_header(
    policy: ContentPolicy, label: str, data: st.DataObject
) -> None:
    """What is nearly a header is prose, and prose is work."""
    header = begin(label)
    fixed = [at for at in range(len(header)) if _is_fixed(header, at)]
    at = data.draw(st.sampled_from(fixed))
    other = data.draw(st.sampled_from("#@!aZ9_").filter(lambda one: one != header[at]))
    changed = header[:at] + other + header[at + 1 :]

    assert policy.judge(b"x.txt", f"see {changed} there".encode()).decision is Decision.INCLUDE


def _is_fixed(header: str, at: int) -> bool:
    return at < len("-----BEGIN") or header.find("PRIVATE") <= at


@settings(deadline=None, max_examples=150)
@given(
    policy=policies,
    before=st.binary(max_size=90),
    after=st.text("abc \n", max_size=60),
    width=st.sampled_from((0, 64, 76)),
    seed=st.integers(0, 2**32),
)
def test_a_header_in_base64_is_found_at_every_alignment(
    policy: ContentPolicy, before: bytes, after: str, width: int, seed: int
) -> None:
    """Kubernetes, CI variables and mails carry keys so."""
    body = random.Random(seed).randbytes(60)
    data = before + begin(LABELS[1]).encode() + b"\n" + base64.b64encode(body) + after.encode()
    coded = base64.b64encode(data)
    if width:
        coded = b"\n".join(coded[at : at + width] for at in range(0, len(coded), width))

    assert policy.judge(b"x.eml", b"data: " + coded).decision is Decision.EXCLUDE


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=3000), cuts=st.lists(st.integers(0, 3000), max_size=5))
def test_the_engines_and_the_cuts_change_nothing(data: bytes, cuts: list[int]) -> None:
    """A decision that depended on them would break deduplication and trust."""
    found = {scanned(policy, data, cuts) for policy in POLICIES}
    found |= {scanned(policy, data, []) for policy in POLICIES}

    assert len(found) == 1


def test_a_token_across_any_cut_is_found_and_redacted_alike() -> None:
    """A transcript is read in windows; its redaction must not depend on them."""
    token = "gh" + "p_" + text(random.Random(5), 36)
    rows = [json.dumps({"n": n, "text": f"a\n{token}\nb"}) for n in range(50)]
    data = "\n".join(rows).encode()
    results = set()
    counts = set()

    for size in (1, 7, 64, 1000, len(data)):
        redactor = POLICIES[0].start_redaction()
        pieces = [redactor.feed(data[at : at + size]) for at in range(0, len(data), size)]
        results.add(b"".join((*pieces, redactor.finish())))
        counts.add(redactor.counts.total())

    (result,) = results
    assert token.encode() not in result
    assert counts == {50}
    for before, after in zip(rows, result.decode().split("\n"), strict=True):
        assert json.loads(after) == {**json.loads(before), "text": "a\nwithheld(token-github)\nb"}
