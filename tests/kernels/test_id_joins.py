"""Finding the items of one index in another: the compiled merge of texts against a dictionary."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data.labels import Labels

ids = st.text(alphabet="ab\x7f\xe9\u65e5\U0001d11e", max_size=4)
tables = st.dictionaries(
    st.sampled_from("pqr"), st.dictionaries(ids, st.just(1.0), min_size=1, max_size=8), min_size=1
)


@settings(deadline=None)
@given(tables, tables)
def test_merge_of_texts_finds_what_a_dictionary_finds(mine, theirs):
    a, b = Labels.from_dict(mine).index, Labels.from_dict(theirs).index
    found = a.locate(b).tolist()
    slots = {}
    for q in b.queries:
        here = b.slots(q)
        slots.update({(q, item): here.start + k for k, item in enumerate(b.items[here])})
    assert found == [slots.get((q, item), -1) for q in a.queries for item in a.items[a.slots(q)]]


def test_mixed_ids_and_lone_surrogates_take_the_dictionary():
    a, b = (
        Labels.from_dict({"q": dict.fromkeys(v, 1.0)}).index for v in ([1, "1", "\ud800"], ["\ud800", 1, 2])
    )
    assert a.items.as_text is None
    assert a.locate(b).tolist() == [0, -1, 2]
