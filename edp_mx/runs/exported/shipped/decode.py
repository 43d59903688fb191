"""From scores to answers with the keys of `edp-mx predict --json`."""

import numpy as np


class Decoder:
    """Labels by their scores; slots by the best path of a conditional random field.

    Shapes: transitions (K from, K to), start (K,), end (K,), which `best` and `marginals` read.
    """

    def __init__(self, about):
        self.labels, self.tags = about["intents"], about.get("slots")
        self.temperature, self.threshold = about["temperature"], about["threshold"]
        self.out_of_scope = about["out_of_scope"]
        if self.tags:
            names = ("transitions", "start", "end")
            self.transitions, self.start, self.end = (np.array(about[name]) for name in names)
            self.moves = np.exp(self.transitions - self.transitions.max())  # (K from, K to)

    def __call__(self, texts, counts, scores, emissions=None):
        """Yield the answer to each list of tokens; the model read the first `counts` (N,) of each.

        Shapes: scores (N, I) of labels, emissions (N, T, K) of tags.
        """
        scores = scores.astype(np.float64) / self.temperature
        shares = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))  # (N, I)
        order = np.argsort(-shares, kind="stable")  # (N, I)
        if emissions is None:
            for tokens, best, own in zip(texts, order, shares):
                ranked = {self.labels[i]: float(own[i]) for i in best}
                yield {"tokens": tokens, "label": self.label(best[0], own),
                       "confidence": float(own[best[0]]), "confidences": ranked}  # fmt: skip
            return
        emissions, counts = emissions.astype(np.float64), np.asarray(counts)
        paths, sure = self.best(emissions, counts), self.marginals(emissions, counts)
        sure = np.take_along_axis(sure, paths[..., None], 2)[..., 0]  # (N, T)
        for n, (tokens, count, (best, *_), own) in enumerate(zip(texts, counts, order, shares)):
            tags, spans = self.slots(tokens, paths[n, :count], sure[n])
            yield {"tokens": tokens, "slots": tags, "intent": self.label(best, own),
                   "intent_confidence": float(own[best]), "spans": spans}  # fmt: skip

    def label(self, best, shares):
        """Return the name of the best label, if it is sure enough."""
        return self.labels[best] if shares[best] >= self.threshold else self.out_of_scope

    def slots(self, tokens, path, sure):
        """Return the tags of all tokens, and the slots; each is as sure as its least sure tag."""
        tags = [self.tags[k] for k in path] + ["O"] * (len(tokens) - len(path))
        spans: list = []
        for t, tag in enumerate(tags):
            if tag == "O":
                continue
            name, own = tag[2:] or "_", float(sure[t])
            last = spans[-1] if spans else {}
            if tag[0] == "I" and last.get("end") == t and last["slot"] == name:
                last.update(text=f"{last['text']} {tokens[t]}", end=t + 1,
                            confidence=min(last["confidence"], own))  # fmt: skip
            else:
                tags[t] = f"B{tag[1:]}"
                spans.append({"slot": name, "text": tokens[t], "start": t, "end": t + 1,
                              "confidence": own})  # fmt: skip
        return tags, spans

    def best(self, emissions, counts):
        """Return the best paths by Viterbi decoding. Shapes: (N, T, K), (N,) → (N, T) tags."""
        scores = [self.start + emissions[:, 0]]
        for t in range(1, emissions.shape[1]):
            moved = [(own[:, None] + self.transitions).max(axis=0) for own in scores[-1]]
            scores.append(moved + emissions[:, t])
        paths = np.zeros(emissions.shape[:2], np.int64)
        for t in range(len(scores) - 1, -1, -1):
            ahead = self.transitions.T[paths[:, t + 1]] if t + 1 < len(scores) else 0  # (N, K)
            after = np.where(counts[:, None] == t + 1, self.end, ahead)
            paths[:, t] = (scores[t] + after).argmax(axis=1)
        return paths

    @np.errstate(divide="ignore")  # the logarithm of what is too small to matter
    def marginals(self, emissions, counts):
        """Return the probability of each tag at each token. Shapes: (N, T, K), (N,) → (N, T, K)."""
        forward = [self.start + emissions[:, 0]]  # up to a constant of each text
        backward = [np.broadcast_to(self.end, forward[0].shape)]
        for t in range(1, emissions.shape[1]):
            before = np.exp(forward[-1] - forward[-1].max(axis=1, keepdims=True))
            forward.append(np.log(before @ self.moves) + emissions[:, t])
        for t in range(emissions.shape[1] - 1, 0, -1):
            after = emissions[:, t] + backward[-1]
            after = np.exp(after - after.max(axis=1, keepdims=True)) @ self.moves.T
            backward.append(np.where(counts[:, None] == t, self.end, np.log(after)))
        logs = np.stack(forward, 1) + np.stack(backward[::-1], 1)  # (N, T, K)
        return np.exp(logs - np.logaddexp.reduce(logs, axis=2, keepdims=True))
