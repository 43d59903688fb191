"""Corpora of text to generate, a few rows in the form in which each is published."""

import csv
import json

from support.jsonl import write_records

TURNS = [
    {"dialogue": "train/1_00000", "turn": 1, "acts": [["Restaurants_1", "REQUEST", "city", []]],
     "context": ["user: I am hungry."], "text": "In which city?"},
    {"dialogue": "train/1_00000", "turn": 3,
     "acts": [["Restaurants_1", "OFFER", "restaurant_name", ["71 Saint  Peter"]],
              ["Restaurants_1", "OFFER", "city", ["San Jose"]],
              ["Restaurants_1", "INFORM", "has_live_music", ["False"]]],
     "context": ["user: I am hungry.", "system: In which city?", "user: San Jose."],
     "text": "71 Saint Peter in San Jose, without live music."},
    {"dialogue": "train/1_00001", "turn": 1,
     "acts": [["Movies_2", "OFFER", "title", ["Up", 'The "Q"']],
              ["Movies_2", "OFFER_INTENT", "intent", ["PlayMovie"]]],
     "context": ["user: A film?"], "text": 'Shall I play Up or The "Q"?'},
]  # fmt: skip
SPOKEN_TURN = {  # of DSTC8, as released
    "speaker": "USER", "utterance": "To Fresno",
    "frames": [{"slots": [], "actions": [{"act": "INFORM", "values": ["Fresno"]}]}],
}  # fmt: skip
TABLES = [  # of E2E
    ("name[The Mill], customer rating[3 out of 5], familyFriendly[yes]", "The Mill, for children."),
    ("name[The Mill], customer rating[3 out of 5], familyFriendly[yes]",
     "The Mill is rated 3 out of 5, and welcomes families."),
    ("name[Café Rouge], priceRange[less than £20]", "Café Rouge is cheap."),
]  # fmt: skip
TRIPLES = [  # of DART
    {"tripleset": [["Mars Hill", "JOINED", "1973"], ["Mars Hill", "LOCATION", "Mars Hill, NC"]],
     "subtree_was_extended": False,
     "annotations": [{"source": "WikiTableQuestions_mturk", "text": "Mars Hill joined in 1973."},
                     {"source": "WikiTableQuestions_mturk", "text": ""},
                     {"source": "WikiTableQuestions_lily", "text": "In 1973 came Mars Hill."}]},
    {"tripleset": [["[TABLECONTEXT]", "[TITLE]", "Mayors"], ["Airan", "MAYOR", "M. d'Ison"]],
     "subtree_was_extended": True,
     "annotations": [{"source": "WikiSQL_decl_sents", "text": "M. d'Ison was mayor of Airan."}]},
]  # fmt: skip
PERSONA_CHAT = """\
1 your persona: i like to ski.
2 your persona: i have a dog.
3 hi , how are you ?\tfine , and you ?\t\tno .|fine , and you ?
4 fine . any pets ?\ta dog .\t\tyes .|a dog .
5 what is its name ?\trex .
1 partner's persona: i am old.
2 hello .\thello !\t\tbye .|hello !
"""


def write_turns(path, turns=TURNS):
    return write_records(path, turns)


def write_tables(path, tables=TABLES, header=("mr", "ref")):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *tables])
    return path


def write_triples(path, records=TRIPLES):
    path.write_text(json.dumps(records, indent=1))
    return path
