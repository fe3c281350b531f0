"""What a visit leaves behind: one JSON, one table, one archive of texts and one log, each of limited size.

Each is written whole to another name and renamed, so that whenever a visit ends, the newest complete one is
there.
"""

import io
import json
import os
import re
import sys
import tarfile
import threading
import time

from gpu import table

NAMES = ("results.json", "table.md", "texts.tar.xz", "log.txt")
LIMIT = 10 << 20


def replace(path, data):
    """A file is there whole or not at all."""
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def shortened(text, most):
    """The two ends of a text of at most `most` characters, and a note of what is left out."""
    if len(text) <= most:
        return text
    half = max(0, most - 60) // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[len(text) - half:]}"


def shorten_strings(value, most):
    if isinstance(value, str):
        return shortened(value, most)
    if isinstance(value, list):
        return [shorten_strings(each, most) for each in value]
    if isinstance(value, dict):
        return {name: shorten_strings(each, most) for name, each in value.items()}
    return value


class Places:
    """Words that stand for folders of a machine: what a visit leaves behind may be published."""

    def __init__(self, words):
        """`words`: by path; of paths below one another the longer one counts."""
        paths = sorted((path for path in words if len(path) > 1), key=len, reverse=True)
        self.words = [(re.compile(re.escape(path) + r"(?![\w-])"), words[path]) for path in paths]

    def hide(self, value):
        if isinstance(value, str):
            for path, word in self.words:
                value = path.sub(lambda _, word=word: word, value)
            return value
        if isinstance(value, list):
            return [self.hide(each) for each in value]
        if isinstance(value, dict):
            return {name: self.hide(each) for name, each in value.items()}
        return value


def as_json(value, limit):
    """The text of a JSON of at most `limit` bytes: first long strings give way, then the entries' details."""
    text = (json.dumps(value, indent=1) + "\n").encode()
    most = 1 << 16
    while len(text) > limit and most >= 256:
        small = dict(
            shorten_strings(value, most),
            truncated=f"strings are cut to {most} characters to fit {limit} bytes",
        )
        text = (json.dumps(small, indent=1) + "\n").encode()
        most //= 4
    if len(text) > limit:
        kept = ("name", "state", "why", "seconds")
        parts = [
            dict(
                part,
                entries=[
                    {name: shortened(str(entry[name]), 200) for name in kept if name in entry}
                    for entry in part["entries"]
                ],
            )
            for part in value["parts"]
        ]
        small = dict(
            shorten_strings(value, 256),
            parts=parts,
            truncated=f"details of entries are left out to fit {limit} bytes",
        )
        text = (json.dumps(small, indent=1) + "\n").encode()
    if len(text) > limit:
        small = {
            "truncated": f"everything but the parts' states is left out to fit {limit} bytes",
            "parts": [{"part": part["part"], "state": part["state"]} for part in value["parts"]],
        }
        text = (json.dumps(small, indent=1) + "\n").encode()
    return text


def say(line):
    """Prints a line. A visit goes on where nobody reads what it prints: `gpu_check ... | head`."""
    try:
        print(line, flush=True)
    except UnicodeEncodeError:
        say(line.encode("ascii", "backslashreplace").decode())
    except (OSError, ValueError):
        # What is buffered would fail again when Python ends, and change the exit status.
        nowhere = open(os.devnull, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        except (OSError, ValueError):
            pass  # closed, or no file at all
        sys.stdout = nowhere


class Results:
    """The state of a visit, in memory and on disk. Entries may come from several threads."""

    def __init__(self, out, about, limit=LIMIT, places=None):
        self.out, self.limit, self.places = out, limit, Places(places or {})
        self.start = time.monotonic()
        self.lock = threading.RLock()
        self.data = {
            **about,
            "finished": False,
            "seconds": 0.0,
            "machine": {},
            "missing": [],
            "reduced": [],
            "fallbacks": [],
            "faults": [],
            "parts": [],
        }
        self.texts = {}  # name in the archive -> text
        self.archived = None
        self.logged = 0
        self.log_file = open(self.path("log.txt"), "w", encoding="utf-8")
        self.write()

    def path(self, name):
        return os.path.join(self.out, name)

    # ---- what happened

    def begin(self, name, limit):
        with self.lock:
            part = {"part": name, "state": "running", "limit": round(limit, 1), "seconds": 0.0, "entries": []}
            self.data["parts"].append(part)
            self.write()
            return part

    def add(self, part, entry):
        with self.lock:
            part["entries"].append(entry)
            self.write()
        self.log(
            f"{part['part']:>12}  {entry['state']:7}  {entry['name']}  "
            f"{shortened(entry.get('why', ''), 400)}".rstrip()
        )

    def change(self, entry, **values):
        """What is found out of an entry later."""
        with self.lock:
            entry.update(values)
            self.write()
        why = shortened(entry.get("why", ""), 400)
        self.log(f"{'':>12}  {entry['state']:7}  {entry['name']}  {why}".rstrip())

    def end(self, part, seconds):
        states = [entry["state"] for entry in part["entries"]]
        with self.lock:
            part["seconds"] = round(seconds, 1)
            part["state"] = (
                "failed"
                if "failed" in states
                else "passed" if "passed" in states else "skipped" if states else "empty"
            )
            self.write()
            self.write_texts()

    def fault(self, fault):
        """Adds a fault; its number."""
        with self.lock:
            number = len(self.data["faults"])
            self.data["faults"].append(fault)
            self.write()
            self.write_texts()  # whatever ends the visit later, what a fault said is kept
        words = [f"{name} {fault[name]}" for name in ("kernel", "phase") if fault.get(name) is not None]
        words += fault.get("lines", [])
        self.log(
            f"{fault['part']:>12}  fault    {fault['case']}: {fault['kind']};"
            f" {', '.join(words) or 'no kernel named'}"
        )
        return number

    def tell(self, found, **values):
        """What is found out of an entry or a fault later, and is not worth a line of the log."""
        with self.lock:
            found.update(values)
            self.write()

    def name_kernel(self, number, kernel):
        """A fault whose errors named no kernel, from what its program launched last."""
        with self.lock:
            if not self.data["faults"][number]["kernel"]:
                self.data["faults"][number].update(kernel=kernel, phase=1)
                self.write()

    def note(self, key, value):
        with self.lock:
            if value not in self.data[key]:
                self.data[key].append(value)
                self.write()

    def text(self, name, content):
        """A text for the archive; its name is made a plain one."""
        plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:100]
        with self.lock:
            known, n = plain, 1
            while plain in self.texts:
                n += 1
                plain = f"{n}_{known}"
            self.texts[plain] = self.places.hide(content)
        return plain

    # ---- on disk

    def log(self, line):
        line = self.places.hide(line.replace("\n", " "))
        with self.lock:
            size = len(line.encode()) + 1
            room = self.limit - self.logged - 100
            if room > 0:
                self.log_file.write(
                    line + "\n" if size <= room else "[the log is full; the rest was printed only]\n"
                )
                self.log_file.flush()
            self.logged += size
            say(line)

    def write(self):
        self.data["seconds"] = round(time.monotonic() - self.start, 1)
        text = as_json(self.places.hide(self.data), self.limit)
        replace(self.path("results.json"), text)
        replace(self.path("table.md"), table.markdown(json.loads(text)).encode()[: self.limit])

    def write_texts(self):
        """The archive. While it is too large, the longest texts give way."""
        if self.archived == set(self.texts):
            return
        self.archived = set(self.texts)
        most = min(4 << 20, max(map(len, self.texts.values()), default=0))
        while True:
            data = packed({name: shortened(text, most) for name, text in self.texts.items()})
            if len(data) <= self.limit:
                break
            most //= 2
            if most < 64:
                data = packed({})
                break
        if most < max(map(len, self.texts.values()), default=0):
            self.note(
                "reduced", f"texts.tar.xz: texts are cut to {most} characters to fit {self.limit} bytes"
            )
        replace(self.path("texts.tar.xz"), data)

    def close(self, finished=True):
        with self.lock:
            self.data["finished"] = finished
            self.write_texts()
            self.write()
            self.log_file.close()


def packed(texts):
    """A tar.xz of texts."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=2) as archive:
        for name in sorted(texts):
            data = texts[name].encode(errors="replace")
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
