"""The two sides: which commit each is, its program, and what that writes."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

# What describes plans knows the library from inside; the rest of tests/corpus is written with public headers.
RECORDER = ("plans.h", "plans.cpp")
NOT_PART = ("_test.cpp", "runs.h", "runs.cpp", "kept.h", "kept.cpp")
PROGRAMS_KEPT = 8


class Refused(Exception):
    """What cannot be compared, and why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def git(root, *arguments, env=None, check=True):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    if check and done.returncode:
        raise Refused(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of_checkout(root):
    """The checkout as it lies, new files included, as a commit that no branch has."""
    git_dir = git(root, "rev-parse", "--absolute-git-dir")
    index = os.path.join(git_dir, "replay_index")
    try:
        shutil.copyfile(os.path.join(git_dir, "index"), index)
        git(root, "add", "--all", env={"GIT_INDEX_FILE": index})
        tree = git(root, "write-tree", env={"GIT_INDEX_FILE": index})
    finally:
        if os.path.exists(index):
            os.unlink(index)
    if tree == git(root, "rev-parse", "HEAD^{tree}"):
        return git(root, "rev-parse", "HEAD")
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "replay"), ("EMAIL", "replay@localhost"), ("DATE", "@0 +0000"))}
    return git(root, "commit-tree", tree, "-p", "HEAD", "-m", "the checkout as it lies", env=who)


class Side:
    """One of the two: a commit to build and run, or a folder of texts that is there already."""

    def __init__(self, root, wish, folder):
        self.wish, self.folder, self.commit, self.program = wish, folder, None, None
        earlier = next((f for f in (wish, os.path.join(wish, "new")) if os.path.isfile(os.path.join(f, "run.json"))),
                       None)
        if wish == ".":
            self.commit = commit_of_checkout(root)
        elif earlier:
            self.folder = os.path.abspath(earlier)
        else:
            self.commit = git(root, "rev-parse", "--verify", "--quiet", wish + "^{commit}", check=False)
            if not self.commit:
                raise Refused(f"{wish} is neither a commit nor a folder of an earlier run, which has a run.json")
        self.unable = {}  # graph: why this library cannot express it

    def earlier(self):
        with open(os.path.join(self.folder, "run.json"), encoding="utf-8") as file:
            return json.load(file)


def blocks_of(lines):
    """Top-level definitions of a source as ranges of lines: [begin, end), from a line in the first column to
    the brace that ends it there, or to a semicolon."""
    blocks, begin = [], None
    for number, line in enumerate(lines):
        if begin is None and line[:1].strip() and not line.startswith(("//", "#", "}")):
            begin = number
        if begin is None:
            continue
        text = line.split("//")[0].rstrip()
        if line.startswith("}") or (text.endswith((";", "}")) and number == begin):
            blocks.append((begin, number + 1))
            begin = None
        elif number == begin and (text.startswith("namespace") and text.endswith("{")):
            begin = None  # what is inside counts by itself
    return blocks


def without(text, bad_lines):
    """The source with the definitions blanked that have one of these lines (counted from 1), and the names of
    graphs among them. Nothing where a line is in none."""
    lines = text.split("\n")
    lost, known = [], blocks_of(lines)
    for bad in bad_lines:
        block = next(((b, e) for b, e in known if b <= bad - 1 < e), None)
        if not block:
            return None, []
        for k in range(*block):
            match = re.match(r"GRAPH\((\w+)\)", lines[k])
            if match:
                lost.append(match.group(1))
            lines[k] = ""
    return "\n".join(lines), lost


def errors_of(log, stage):
    """Lines of the stage's files that the compiler complains about, with what it says."""
    pattern = re.compile(re.escape(stage) + r"/tests/corpus/(\w+\.(?:cpp|h)):(\d+):\d+:\s+"
                         r"(?:(?:fatal )?error: (.*)|\s*required from here.*)")
    found = {}
    for line in log.split("\n"):
        match = pattern.search(line)
        if match:
            found.setdefault(match.group(1), {})[int(match.group(2))] = match.group(3) or "a template's error"
    return found


class Workshop:
    """One worktree and one build folder below the user's cache folder: commits are built in turns."""

    def __init__(self, root, jobs):
        self.root, self.jobs = root, jobs
        common = os.path.realpath(os.path.join(root, git(root, "rev-parse", "--git-common-dir")))
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        self.folder = os.path.join(cache, "bitale", "replay", hashlib.sha256(common.encode()).hexdigest()[:12])
        os.makedirs(os.path.join(self.folder, "programs"), exist_ok=True)
        self.tree, self.stage = os.path.join(self.folder, "tree"), os.path.join(self.folder, "stage")
        self.build_folder = os.path.join(self.tree, "build", "release")
        self.lock = open(os.path.join(self.folder, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise Refused("another scripts/replay of this repository runs") from e

    def check_out(self, commit):
        if not os.path.exists(os.path.join(self.tree, ".git")):
            git(self.root, "worktree", "prune")
            git(self.root, "worktree", "add", "--force", "--detach", self.tree, commit)
        git(self.tree, "checkout", "--quiet", "--force", "--detach", commit)
        git(self.tree, "clean", "-fdq")

    def files(self, commit, folder):
        names = git(self.root, "ls-tree", "--name-only", commit, folder + "/").split("\n")
        return [os.path.basename(n) for n in names if n.endswith((".cpp", ".h"))]

    def text(self, commit, path):
        done = subprocess.run(["git", "-C", self.root, "show", f"{commit}:{path}"], capture_output=True)
        return done.stdout.decode() if done.returncode == 0 else None

    def write(self, path, text):
        """Leaves a file alone that has this text: it need not be compiled again."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def sources(self, corpus, recorder):
        """Name: text of all files of the program."""
        texts = {name: self.text(corpus, f"tests/corpus/{name}") for name in self.files(corpus, "tests/corpus")
                 if not name.endswith(NOT_PART) and name not in RECORDER}
        for name in RECORDER:
            texts[name] = self.text(recorder, f"tests/corpus/{name}")
        texts["replay.cpp"] = self.text(recorder, "benchmarks/replay/replay.cpp")
        return None if None in texts.values() else texts

    def compile(self, texts, project, by_hand):
        folder = os.path.join(self.stage, "tests", "corpus")
        for name, text in texts.items():
            self.write(os.path.join(folder, name), text)
        for name in os.listdir(folder):
            if name not in texts:
                os.unlink(os.path.join(folder, name))
        included = os.path.join(self.folder, "replay.cmake")
        self.write(included, project)
        # Configured where and as every checkout is, so that ccache may know the objects from there.
        env = {**os.environ, "LC_ALL": "C", "CCACHE_BASEDIR": self.folder, "CCACHE_NOHASHDIR": "1"}
        configure = subprocess.run(
            ["cmake", "-G", "Ninja", "-S", self.tree, "-B", self.build_folder, "-DCMAKE_BUILD_TYPE=Release",
             "-DBITALE_TESTS=OFF", "-DBITALE_EXAMPLES=OFF", f"-DCMAKE_PROJECT_bitale_INCLUDE={included}",
             f"-DREPLAY_STAGE={self.stage}", f"-DREPLAY_BY_HAND={'ON' if by_hand else 'OFF'}"],
            capture_output=True, text=True, env=env)
        if configure.returncode:
            raise Refused("cmake failed:\n" + configure.stdout + configure.stderr)
        done = subprocess.run(["ninja", "-C", self.build_folder, "-k", "0", "-j", str(self.jobs), "bitale_replay"],
                              capture_output=True, text=True, env=env)
        with open(os.path.join(self.folder, "build.log"), "w", encoding="utf-8") as file:
            file.write(done.stdout + done.stderr)
        return done.returncode == 0, done.stdout + done.stderr

    def build(self, side, corpus):
        """The program of the side's library with the graphs of another commit's corpus."""
        key = hashlib.sha256(f"{side.commit} {corpus}".encode()).hexdigest()[:24]
        kept = os.path.join(self.folder, "programs", key)
        if os.path.exists(kept) and os.path.exists(kept + ".json"):
            with open(kept + ".json", encoding="utf-8") as file:
                side.unable = json.load(file)
            side.program = kept
            os.utime(kept)
            return
        started = time.time()
        say(f"Building {side.wish} ({side.commit[:10]})")
        self.check_out(side.commit)
        hands_out = "struct Decisions" in (self.text(side.commit, "codegen/pipeline.h") or "")
        problem = ""
        # Described by the newer side's code, if that compiles; else by its own.
        for recorder in dict.fromkeys((corpus, side.commit)):
            texts = self.sources(corpus, recorder)
            if not texts:
                continue
            project = self.text(corpus, "benchmarks/replay/replay.cmake")
            side.unable = {}
            while True:
                fine, log = self.compile(texts, project, not hands_out)
                if fine:
                    break
                found = errors_of(log, self.stage)
                if not found or any(name in texts and name in (*RECORDER, "replay.cpp", "corpus.cpp", "corpus.h")
                                    for name in found):
                    problem = log
                    break
                for name, lines in found.items():
                    texts[name], lost = without(texts[name], lines)
                    if texts[name] is None:
                        raise Refused(f"tests/corpus/{name} does not compile with {side.wish}; see "
                                      f"{self.folder}/build.log")
                    side.unable.update({graph: next(iter(lines.values())) for graph in lost})
                say(f"  without {', '.join(sorted(side.unable)) or 'some helpers'}")
            if fine:
                break
        else:
            raise Refused(f"{side.wish} cannot be built with this corpus; the end of {self.folder}/build.log:\n"
                          + problem[-3000:])
        shutil.copyfile(os.path.join(self.build_folder, "bitale_replay"), kept)
        os.chmod(kept, 0o755)
        with open(kept + ".json", "w", encoding="utf-8") as file:
            json.dump(side.unable, file)
        side.program = kept
        self.forget()
        say(f"  built in {time.time() - started:.0f} s")

    def forget(self):
        folder = os.path.join(self.folder, "programs")
        programs = sorted((f for f in os.listdir(folder) if not f.endswith(".json")),
                          key=lambda f: os.path.getmtime(os.path.join(folder, f)))
        for name in programs[:-PROGRAMS_KEPT]:
            os.unlink(os.path.join(folder, name))
            if os.path.exists(os.path.join(folder, name + ".json")):
                os.unlink(os.path.join(folder, name + ".json"))


def prepare(root, wishes, out):
    """Both sides, their programs built."""
    missing = [tool for tool in ("git", "cmake", "ninja", "diff") if not shutil.which(tool)]
    if missing:
        raise Refused(f"needs {' and '.join(missing)}; scripts/test installs what builds need")
    old = Side(root, wishes.old, os.path.join(out, "old"))
    new = Side(root, wishes.new, os.path.join(out, "new"))
    todo = [side for side in (old, new) if side.commit]
    if not todo:
        return old, new
    if os.path.realpath(old.folder) == os.path.realpath(new.folder):
        raise Refused(f"{old.folder} would be both sides; take another --out, or move the earlier run away")
    for side in todo:
        shutil.rmtree(side.folder, ignore_errors=True)
    workshop = Workshop(root, wishes.jobs)
    corpus = new.commit or new.earlier()["corpus"]
    if workshop.text(corpus, "benchmarks/replay/replay.cmake") is None:
        raise Refused(f"{wishes.new} has no corpus; the newer commit comes second")
    for side in todo:
        workshop.build(side, corpus)
        os.makedirs(side.folder, exist_ok=True)
        with open(os.path.join(side.folder, "run.json"), "w", encoding="utf-8") as file:
            json.dump({"commit": side.commit, "corpus": corpus, "unable": side.unable, "wish": side.wish}, file)
    return old, new


def run_one(side, graph, wishes):
    # Nothing of the user's settings may change a plan.
    env = {k: v for k, v in os.environ.items() if not k.startswith("BITALE_")}
    why = ""
    try:
        done = subprocess.run([side.program, graph, side.folder, str(wishes.repeats)], capture_output=True,
                              text=True, timeout=wishes.seconds, env=env)
        if done.returncode:
            why = f"ended with {done.returncode}: {done.stderr.strip()[-500:]}"
    except subprocess.TimeoutExpired:
        why = f"not planned within {wishes.seconds} s"
    if why:
        folder = os.path.join(side.folder, "stopped")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, graph + ".txt"), "w", encoding="utf-8") as file:
            file.write(why + "\n")


def record(both, wishes):
    """Runs the programs, the two of a graph right after one another: their times are compared."""
    todo = [side for side in both if side.program]
    lists = {}
    for side in todo:
        done = subprocess.run([side.program, "--list"], capture_output=True, text=True, check=True)
        lists[id(side)] = [g for g in done.stdout.split() if wishes.only in g]
    graphs = sorted({g for known in lists.values() for g in known})
    for number, graph in enumerate(graphs):
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(graphs)}: {graph:<40}", end="", file=sys.stderr, flush=True)
        for side in todo if number % 2 == 0 else todo[::-1]:
            if graph in lists[id(side)]:
                run_one(side, graph, wishes)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
