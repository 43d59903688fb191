"""Stand-ins for the paper's internal corpora, drawn from seeded grammars.

Each is one file in `grammars`. Read in this order: such a file, `english.yaml` (the values that
fill slots), `grammar` (carriers and their weights), `noise` (what goes wrong), `generator`.
"""

from edp_mx.data.synthetic.generator import make_utterances
from edp_mx.data.synthetic.grammar import STANDINS, grammar_files

__all__ = ["STANDINS", "grammar_files", "make_utterances"]
