"""From scores to answers with the keys of `edp-mx predict --json`."""

import numpy as np


class Decoder:
    """Labels by their scores; slots by the best path of a conditional random field.

    Shapes: transitions (K from, K to), start (K,), end (K,), which `best` and `marginals` read.
    """

    def __init__(self, about):
        self.labels, self.tags = about["intents"], about.get("slots")
        self.temperature = about.get("temperature", 1.0)
        self.threshold = about.get("threshold", 0.0)
        if self.tags:
            names = ("transitions", "start", "end")
            self.transitions, self.start, self.end = (np.array(about[name]) for name in names)
            self.moves = np.exp(self.transitions - self.transitions.max())  # (K from, K to)

    def __call__(self, tokens, scores, emissions=None):
        """Return the answer to one text. Shapes: scores (I,), emissions (T, K) of the first T."""
        scores = scores.astype(np.float64) / self.temperature
        shares = np.exp(scores - np.logaddexp.reduce(scores))  # (I,)
        ranked = {self.labels[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}
        label, confidence = next(iter(ranked.items()))
        label = label if confidence >= self.threshold else "out of scope"
        if emissions is None:
            return {"tokens": tokens, "label": label, "confidence": confidence,
                    "confidences": ranked}  # fmt: skip
        tags, spans = self.slots(tokens, emissions.astype(np.float64))
        return {"tokens": tokens, "slots": tags, "intent": label, "intent_confidence": confidence,
                "spans": spans}  # fmt: skip

    def slots(self, tokens, emissions):
        """Return the tags of all tokens, and the slots; each is as sure as its least sure tag."""
        path, sure = self.best(emissions), self.marginals(emissions)
        tags = [self.tags[k] for k in path] + ["O"] * (len(tokens) - len(path))
        spans: list = []
        for t, tag in enumerate(tags):
            if tag == "O":
                continue
            name, own = tag[2:] or "_", float(sure[t, path[t]])
            last = spans[-1] if spans else {}
            if tag[0] == "I" and last.get("end") == t and last["slot"] == name:
                last.update(text=f"{last['text']} {tokens[t]}", end=t + 1,
                            confidence=min(last["confidence"], own))  # fmt: skip
            else:
                tags[t] = f"B{tag[1:]}"
                spans.append({"slot": name, "text": tokens[t], "start": t, "end": t + 1,
                              "confidence": own})  # fmt: skip
        return tags, spans

    def best(self, emissions):
        """Return the best path by Viterbi decoding. Shapes: (T, K) → T tags."""
        score, ways = self.start + emissions[0], []
        for row in emissions[1:]:
            moves = score[:, None] + self.transitions  # (K from, K to)
            ways.append(moves.argmax(axis=0))
            score = moves.max(axis=0) + row
        path = [int((score + self.end).argmax())]
        for way in reversed(ways):
            path.append(int(way[path[-1]]))
        return path[::-1]

    @np.errstate(divide="ignore")  # the logarithm of what is too small to matter
    def marginals(self, emissions):
        """Return the probability of each tag at each token. Shapes: (T, K) → (T, K)."""
        forward, backward = [self.start + emissions[0]], [self.end]  # up to a constant each
        for row in emissions[1:]:
            before = np.exp(forward[-1] - forward[-1].max())
            forward.append(np.log(before @ self.moves) + row)
        for row in emissions[:0:-1]:
            after = row + backward[-1]
            backward.append(np.log(self.moves @ np.exp(after - after.max())))
        logs = np.add(forward, backward[::-1])  # (T, K)
        return np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
