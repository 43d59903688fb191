"""A headless Chromium, driven by its DevTools protocol over two pipes."""

import json
import os
import shutil
import subprocess

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--remote-debugging-pipe"]  # fmt: skip


class Browser:
    """One tab. `events` are those of the protocol so far."""

    def __init__(self, folder):
        heard, to_hear = os.pipe()
        to_say, said = os.pipe()
        # The protocol's pipes are the file descriptors 3 and 4.
        program = ["bash", "-c", f'exec "$@" 3<&{heard} 4>&{said}', "bash", CHROMIUM, *FLAGS]
        self._process = subprocess.Popen(
            [*program, f"--user-data-dir={folder}"], pass_fds=(heard, said),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(heard)
        os.close(said)
        self._out, self._in = os.fdopen(to_hear, "wb"), os.fdopen(to_say, "rb")
        self._count, self._pending, self._session, self.events = 0, b"", {}, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """The answer to one call."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **self._session}
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, page, *, width, scheme="light", media="", height=900):
        """Shows a file, or an address, in a window of that width, and waits until it is there."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.events.clear()
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def run(self, script):
        """The value of a script in the page, waited for where it is promised."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector):
        """Presses the mouse on an element."""
        x, y = self.run(
            f"""(() => {{ const each = document.querySelector({json.dumps(selector)});
            each.scrollIntoView({{block: "center", inline: "center"}});
            const box = each.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def close(self):
        self._out.close()  # it ends when nobody talks to it any more
        self._in.close()
        self._process.wait(timeout=60)

    def _receive(self):
        while b"\0" not in self._pending:
            read = self._in.read1(1 << 16)
            assert read, "the browser has ended"
            self._pending += read
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)
