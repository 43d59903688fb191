"""Stand-ins for the paper's internal corpora, from seeded grammars: communication, health, video.

Read in this order: a corpus (`communication`: what people say), `catalogues` (the values that fill
its slots), `grammar` (carriers and their weights), `noise` (what goes wrong), `generator`.
"""

from edp_mx.data.synthetic.generator import CORPORA, make_utterances, write_corpus

__all__ = ["CORPORA", "make_utterances", "write_corpus"]
