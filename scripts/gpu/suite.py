"""Files of tests. The cases of a file run in one process until one of them ends the device; the rest then in
a fresh one."""

import os
import re
import time
from xml.etree import ElementTree

from gpu import commands, isolation
from gpu.visit import LEAST, Skip


class Case:
    def __init__(self, name):
        self.name, self.passed, self.texts, self.ended = name, None, [], False

    @property
    def sticky(self):
        return any(isolation.STICKY in text for text in self.texts)


def read_report(data):
    """The cases of a Catch2 XML report, of versions 2 and 3, as far as it was written."""
    parser = ElementTree.XMLPullParser(("start", "end"))
    cases = []
    try:
        parser.feed(data)
        for event, element in parser.read_events():
            _take(cases, event, element)
    except ElementTree.ParseError:
        pass  # a process that was ended leaves half a report
    return cases


def _take(cases, event, element):
    if element.tag == "TestCase" and event == "start":
        cases.append(Case(element.get("name", "")))
    elif event == "end" and cases:
        case = cases[-1]
        text = " ".join((element.text or "").split())
        where = f"{os.path.basename(element.get('filename', ''))}:{element.get('line', '')}: "
        if element.tag == "Expression" and element.get("success") == "false":
            words = [
                " ".join((element.findtext(name) or "").split())
                for name in ("Original", "Expanded", "Exception")
            ]
            case.texts.append(where + " | ".join(word for word in words if word))
        elif element.tag in ("Failure", "FatalErrorCondition", "Exception") and text:
            if not any(text in known for known in case.texts):
                case.texts.append(where + text)
        elif element.tag == "OverallResult":
            case.passed = element.get("success") == "true"
        elif element.tag == "TestCase":
            case.ended = True


def names_of(program, tags):
    """The cases of a file, by either version's option."""
    for words in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        ended = commands.run([program, "-#", tags, *words], 20)
        if ended.status is None or ended.kind == "crash":
            raise Skip(f"{program} does not list its cases: {ended.how}")
        if "Unrecognised token" not in ended.text and ended.status != 255:
            return [line.strip() for line in ended.text.splitlines() if line.strip()]
    raise Skip(f"{program} does not list its cases: {ended.text[-300:]}")


def files_of(program):
    """The names of a program's files of tests."""
    ended = commands.run([program, "-#", "--list-tags"], 20)
    return sorted(set(re.findall(r"\[#(\w+)\]", ended.text)))


def select(name):
    """A test specification that means exactly this case."""
    return re.sub(r'([\\,\[\]"*~])', r"\\\1", name)


class File:
    """One file of tests: its cases, in as many processes as it takes."""

    def __init__(self, visit, program, tags, seconds, stall=45):
        self.visit, self.tags, self.stall = visit, tags, stall * visit.scale
        self.path = visit.program(program)
        self.seconds, self.spent = seconds * visit.scale, 0.0
        self.cache = visit.options.cache
        if visit.real():
            # Of its own: what other files compile at the same time must not pass for progress of this one.
            self.cache = os.path.join(self.cache, "tests", re.sub(r"\W+", "_", f"{program} {tags}"))
            os.makedirs(self.cache, mode=0o700, exist_ok=True)
        self.flags = (f"cache_dir={self.cache}",)
        self.entry = {
            "name": f"{program} {tags}",
            "state": "passed",
            "cases": 0,
            "processes": 0,
            "failures": {},
            "not_run": [],
        }

    def run(self):
        """The file's entry."""
        remaining = names_of(self.path, self.tags)
        if not remaining:
            raise Skip(f"{self.entry['name']}: no such cases")
        total, skips = len(remaining), []
        while remaining:
            left = self.visit.left()
            if min(self.seconds - self.spent, left) < LEAST or "interrupted" in self.entry:
                self.entry["not_run"] = remaining
                break
            ended, cases = self.process(remaining, left)
            self.spent += ended.seconds
            skips += re.findall(r"SKIPPED: (.*)", ended.text)
            remaining = self.judge(remaining, ended, cases)
        self.finish(total, skips)
        return self.entry

    def process(self, names, left):
        report = self.visit.scratch(".xml")
        whole = self.entry["processes"] == 0
        self.entry["processes"] += 1
        chosen = self.tags if whole else ",".join(select(name) for name in names)
        last = {"state": None, "since": time.monotonic()}

        def progress():
            state = len(re.findall(b"<TestCase ", read(report))), changed(self.cache)
            if state != last["state"]:
                last.update(state=state, since=time.monotonic())
            return state

        own = self.seconds - self.spent
        ended = commands.run(
            [self.path, "-#", chosen, "-r", "xml", "-o", report],
            min(own, left),
            self.visit.environment(self.flags),
            self.visit.options.temporary,
            progress,
            self.stall,
        )
        waited = time.monotonic() - last["since"]
        # The end of the part says nothing of a case, and one that compiles is slow.
        if ended.kind == "limit" and own <= left and waited > self.stall:
            ended.kind = "hang"
            ended.how += f", {waited:.0f} s after its last progress"
        data = read(report)
        if not ended.passed:
            self.visit.results.text(
                f"{self.entry['name']}.{self.entry['processes']}.txt",
                ended.text + "\n" + data.decode(errors="replace"),
            )
        return ended, read_report(data)

    def judge(self, names, ended, cases):
        """Records what the process's cases did; the names of those that have to run in a fresh one."""
        known = {" ".join(name.split()): name for name in names}
        done, culprit = set(), None
        for case in cases:
            name = known.get(" ".join(case.name.split()))
            if name is None:
                continue
            if culprit and (case.sticky or not case.ended):
                continue  # the device was gone already
            if not case.ended and ended.kind == "limit":
                self.entry["interrupted"] = name
                continue
            done.add(name)
            self.entry["cases"] += 1
            if case.texts or case.passed is False:
                self.entry["failures"][name] = [text[:3000] for text in case.texts[:4]] or ["failed"]
            if case.sticky or not case.ended:
                culprit = (name, "sticky" if case.ended else ended.kind or "crash", case)
        if not culprit and ended.kind == "limit":
            return [name for name in names if name not in done]
        if not culprit and ended.kind in ("crash", "hang"):
            # It wrote its last words, or ended between two cases, or before the first.
            last = next((known.get(" ".join(case.name.split())) for case in reversed(cases)), None)
            culprit = (last or names[0], ended.kind, cases[-1] if cases else Case(names[0]))
            self.entry["cases"] += culprit[0] not in done
            done.add(culprit[0])
        if culprit:
            self.fault(*culprit, ended)
            return [name for name in names if name not in done]
        rest = [name for name in names if name not in done]
        if rest:
            self.entry["not_run"] = rest
            self.entry["why"] = f"the process told nothing of {len(rest)} cases ({ended.how})"
        return []

    def fault(self, name, kind, case, ended):
        text = "\n".join(case.texts) or ended.text
        told = commands.Ended(ended.command, ended.status, ended.how, ended.seconds, text, ended.kind)
        self.entry["failures"].setdefault(name, [f"{kind}: {ended.how}"])
        isolation.investigate(self.visit, name, [self.path, "-#", select(name)], kind, told, self.flags)

    def finish(self, total, skips):
        entry = self.entry
        entry["seconds"] = round(self.spent, 2)
        failed = len(entry["failures"])
        if failed or entry["not_run"] and "why" in entry:
            entry["state"] = "failed"
            entry.setdefault(
                "why", f"{failed} of {total} cases failed: {', '.join(list(entry['failures'])[:3])}"
            )
        elif entry["not_run"]:
            entry.update(
                state="skipped" if entry["cases"] == 0 or "interrupted" in entry else "passed",
                why=f"out of time before the end of {len(entry['not_run'])} of {total} cases",
            )
        elif skips and len(skips) >= total:
            entry.update(state="skipped", why="; ".join(sorted(set(skips))))
        if skips:
            entry["skips"] = sorted(set(skips))


def changed(cache):
    """When a kernel was last kept: a case that compiles a hundred of them says nothing for a minute, and does
    not hang."""
    try:
        return os.stat(cache).st_mtime_ns
    except OSError:
        return 0


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def run_file(visit, program, tags, seconds, stall=45):
    """Adds the entry of a file of tests."""
    try:
        visit.add(File(visit, program, tags, seconds, stall).run())
    except Skip as why:
        visit.skip(f"{program} {tags}", why)
