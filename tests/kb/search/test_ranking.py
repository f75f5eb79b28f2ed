"""The ranking of the embedded index, pinned: ids and order as they were before there was a seam."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kb.search.ranking import FILTERS, TRANSLATIONS, questions, ranked_entries
from tests.kb.search.test_searcher import make_searcher

# numbers of the first six entries of every question, by filter
FIRST_SIX = (
    [
        "015 053 018 052 040 032",
        "007 000 009 029 049 039",
        "040 030 045 003 037 028",
        "028 048 007 044 034 041",
        "021 022 028 003 045 031",
        "027 028 054 037 014 038",
        "010 049 015 036 000 014",
        "053 009 045 026 028 014",
        "045 030 029 028 014 049",
        "009 000 001 002 003 004",
        "000 001 002 003 004 005",
    ],
    [
        "015 052 021 019 054 003",
        "007 039 012 004 021 052",
        "030 045 003 037 028 015",
        "028 007 027 054 019 051",
        "021 022 028 003 045 031",
        "027 028 054 037 007 004",
        "015 036 037 054 030 031",
        "045 028 030 015 043 037",
        "045 030 028 015 043 037",
        "003 004 006 007 012 013",
        "003 004 006 007 012 013",
    ],
    [
        "053 018 033 058 026 010",
        "009 029 049 058 018 001",
        "037 049 026 029 017 042",
        "034 041 057 058 017 010",
        "017 026 002 050 025 005",
        "037 057 025 001 058 041",
        "010 049 042 037 026 005",
        "053 009 026 049 029 037",
        "029 049 026 053 058 037",
        "009 001 002 005 010 013",
        "001 002 005 009 010 013",
    ],
)


def test_ids_and_order_are_what_they_were(tmp_path: Path) -> None:
    """Every question finds the same entries in the same order, and the scores mean the same."""
    store, _, searcher = make_searcher(tmp_path, ranked_entries(), TRANSLATIONS)
    found = [
        [
            " ".join(hit.entry_id[1:] for hit in searcher.search(one, filters=only, limit=6).hits)
            for one in questions()
        ]
        for only in FILTERS
    ]
    assert found == list(FIRST_SIX)
    scores = [hit.score for hit in searcher.search(questions()[4]).hits[:5]]
    assert scores == pytest.approx([0.7236, 0.7070, 0.6971, 0.6917, 0.6911], abs=1e-4)
    store.close()
