"""Answer utterances with model.onnx: numpy and onnxruntime, and tokenizers for word pieces.

python answer.py "call my parents"        # or one utterance per line on standard input
"""

import json
import sys
from pathlib import Path

import onnxruntime
from decode import Decoder
from encode import Encoder

FOLDER = Path(__file__).resolve().parent
AT_ONCE = 64


class Model:
    """The model of a folder, by default the one of this file."""

    def __init__(self, folder=FOLDER):
        about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        graph = str(folder / "model.onnx")
        self.session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        self.encoder, self.decoder = Encoder(folder, about), Decoder(about)

    def answers(self, texts):
        """Yield an answer per text; each text needs at least one word."""
        rows = [self.encoder.cut(text) for text in texts]
        inputs, counts = self.encoder(rows)
        asked = {each.name: inputs[each.name] for each in self.session.get_inputs()}
        scores, *emissions = self.session.run(None, asked)  # (N, I), and with slots (N, T, K)
        yield from self.decoder(rows, counts, scores, *emissions)


if __name__ == "__main__":
    text = "" if sys.argv[1:] else sys.stdin.buffer.read().decode("utf-8", "replace")
    lines, model = sys.argv[1:] or text.split("\n")[: -1 if text.endswith("\n") else None], Model()
    for start in range(0, len(lines), AT_ONCE):
        given = lines[start : start + AT_ONCE]
        spoken = [line for line in given if line.strip()]
        answers = model.answers(spoken) if spoken else iter(())
        for line in given:
            print(json.dumps(next(answers) if line.strip() else {"error": "there is no word"}))
