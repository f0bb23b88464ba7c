# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over the DevTools protocol's pipe: JSON messages that end in a zero byte, on descriptors 3 and 4."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT = 300  # seconds for one answer: a loaded machine is slow, and only a Chromium that has died never answers


def find_chromium():
    return next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)


class Browser:
    """One page. `problems` has what its console and its exceptions printed; `requests` every address that it requested."""

    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="ddpbrowser_")
        to_read, self.out = os.pipe()
        self.incoming, to_write = os.pipe()
        command = [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
                   "--no-first-run", "--disable-extensions", "--disable-background-networking", f"--window-size={width},{height}", "about:blank"]
        # The shell puts the pipe's ends on the descriptors that Chromium expects.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", *command], pass_fds=(to_read, to_write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.session, self.problems, self.requests, self.loaded = b"", 0, None, [], [], False
        try:
            self.begin(dark)
        except BaseException:
            self.close()
            raise

    def begin(self, dark):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.incoming)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.incoming, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("Chromium did not answer")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(about["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.problems.append(about["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("dialog: " + about["message"])
            self.call("Page.handleJavaScriptDialog", accept=True)
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **params):
        self.number += 1
        number = self.number
        request = {"id": number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.out, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + LIMIT
        while True:
            answer = self.message(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def open(self, path):
        self.loaded = False
        self.call("Page.navigate", url=f"file://{path}")
        deadline = time.monotonic() + LIMIT
        while not self.loaded:
            self.note(self.message(deadline))

    def js(self, expression):
        """The value of an expression; raises if the expression does."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def click(self, selector):
        spot = self.js(f"(() => {{ const box = document.querySelector({json.dumps(selector)}); box.scrollIntoView({{block: 'center', behavior: 'instant'}});"
                       " const r = box.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], button="left", clickCount=1)

    def press(self, key):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)
