"""Rasa's training data as its documentation writes it, and what is refused by its line."""

import pytest
from support.refusals import refused

from edp_mx.data.checking import check
from edp_mx.data.readers import read_utterances
from edp_mx.data.utterance import Utterance

NLU = """\
version: "3.1"

nlu:
- intent: check_balance
  examples: |
    - what's my [credit](account) balance?
    - what's the balance on my [credit card account]{"entity":"account","value":"credit"}

    - from [Rome]{"entity": "city", "role": "departure", "group": "1"} to [Oslo](city:oslo)s
- intent: faq/ask_name
  examples:
  - text: |
      who are you
    metadata:
      sentiment: neutral
  - "yes"
- synonym: credit
  examples: |
    - credit card account
- regex: account_number
  examples: |
    - \\d{10,12}
- lookup: banks
  examples: |
    - JPMC
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nlu.yml"


def test_examples_as_published(path):
    path.write_text(NLU)
    (path.parent / "domain.yml").write_text("intents:\n- check_balance\n")
    for place in (path, path.parent):
        found = read_utterances(place)
        assert found == [
            Utterance(("what's", "my", "credit", "balance?"), ("O", "O", "B-account", "O"),
                      "check_balance"),
            Utterance(("what's", "the", "balance", "on", "my", "credit", "card", "account"),
                      ("O",) * 5 + ("B-account", "I-account", "I-account"), "check_balance"),
            Utterance(("from", "Rome", "to", "Oslo", "s"),
                      ("O", "B-city.departure", "O", "B-city", "O"), "check_balance"),
            Utterance(("who", "are", "you"), ("O",) * 3, "faq/ask_name"),
            Utterance(("yes",), ("O",), "faq/ask_name"),
        ]  # fmt: skip
        assert len({u.id for u in found}) == 5


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("[credit](account)", "[credit] (account)", "line 6: a bracket that belongs to no"),
        ("[credit](account)", "[credit(account)", "line 6: a bracket that belongs to no"),
        ("[credit](account)", "[ ](account)", "line 6: a slot without a name or a value"),
        ('{"entity":"account",', '{"entity":account,', "line 7: not JSON"),
        ('{"entity":"account",', '{"name":"account",', 'line 7: .* has no "entity"'),
        ("    - from", "    from", 'line 9: an example does not begin with "- "'),
        ("- intent: faq", "- intents: faq", "line 10: an entry without intent, synonym, regex"),
        ("  examples:\n  - text", "  example:\n  - text", "line 10: the intent .* has no examples"),
        ("who are you", "", "line 12: the utterance is empty"),
        ("- synonym: credit", "- synonym: credit\n  synonym: x", "line 18: 'synonym' is set twice"),
        ("- synonym: credit", "- &a synonym: *a", "line 17: not YAML"),
        ('- "yes"', "- [1]", "line 16: text is not a text"),
        ("    metadata:", "   metadata:", "not YAML"),
    ],
)
def test_what_is_broken_is_refused_by_file_and_line(before, after, told, path):
    assert NLU.count(before) == 1
    path.write_text(NLU.replace(before, after))
    refused(path, rf"nlu\.yml, (line \d+: )?{told}")


def test_a_file_without_examples_is_none(path):
    path.write_text("intents:\n- call\n")
    refused(path, "no known layout")
    path.write_text("nlu: 5\n")
    refused(path, r"nlu\.yml, line 1: nlu is not a list")


def test_all_broken_examples_are_found(path):
    path.write_text(NLU.replace("[credit](account)", "[credit]").replace("- from", "from"))
    found = check(path)
    assert ["line 6" in found.errors[0], "line 9" in found.errors[1]] == [True, True]
    assert (found.utterances, found.left_out, found.unread) == (3, 2, 0)
