"""One compressed archive of programs that run anywhere, and how it is found and unpacked on the other
machine."""

import datetime
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile

from gpu import commands

NAME = "gpu_pack.tar.xz"
INSIDE = "gpu_pack"
TARGETS = {
    "": ["bitale-info"],
    "tests": ["test_numerics", "test_cuda"],
    "benchmarks": ["gpu_probe", "gpu_steps"],
    "examples": ["logistic_regression", "mlp", "mnist_cnn", "cifar10_cnn"],
}
TEXTS = [
    "scripts/gpu_check",
    "scripts/gpu",
    "benchmarks/peers",
    "benchmarks/networks.json",
    "benchmarks/kernels.json",
]
MOST = 20  # MiB of the archive itself
MIB = 1 << 20

HOW = """Bitale's programs for a machine with a GPU, built on {libc} from {commit}.

In a checkout of the repository, with this archive at build/gpu_pack/{name} or in its root:
    scripts/gpu_check --first --out results
Without one:
    tar xf {name} && gpu_pack/scripts/gpu_check --first --out results
docs/gpu-visits.md says what comes of it.
"""


def tracked_bytes(root):
    """What the repository's files take; without git, all files that are no build."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z"],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
        paths = [os.path.join(root, os.fsdecode(name)) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            os.path.join(folder, name)
            for folder, folders, names in os.walk(root)
            for name in names
            if not os.path.relpath(folder, root).startswith(("build", ".git"))
        ]
    return sum(os.lstat(path).st_size for path in paths if os.path.lexists(path))


def needs_libc(programs):
    """The newest version of glibc's symbols that the programs want."""
    found = set()
    for program in programs:
        text = commands.output_of(["readelf", "--version-info", "--wide", program])
        found |= set(re.findall(r"GLIBC_(2\.\d+)", text))
    return max(found, key=lambda version: int(version.split(".")[1]), default="")


PORTABLE_LIBC = (2, 35)


def wants_newer_libc(programs):
    """Symbols of glibc newer than Ubuntu 22.04's, the oldest system of CUDA's usual images."""
    found = set()
    for program in programs:
        text = commands.output_of(["readelf", "--dyn-syms", "--wide", program])
        for name, minor in re.findall(r"UND (\S+)@GLIBC_2\.(\d+)", text):
            if (2, int(minor)) > PORTABLE_LIBC:
                found.add(name)
    return sorted(found)


def refuse_newer_libc(programs, allowed):
    """The symbols that Ubuntu 22.04 does not have; programs that want some are refused, unless allowed."""
    cure = "--newer-glibc packs them all the same, for a machine that is known to have it"
    if not shutil.which("readelf"):
        if not allowed:
            sys.exit(
                "There is no readelf (package binutils), so nobody knows which glibc the programs want;"
                f" nothing was packed. {cure}."
            )
        return []
    newer = wants_newer_libc(programs)
    if newer and not allowed:
        sys.exit(
            f"The programs want a newer glibc than {'.'.join(map(str, PORTABLE_LIBC))}, that of Ubuntu 22.04,"
            f" because of {', '.join(newer)}; nothing was packed. The preset portable, built on Debian 12,"
            f" wants none of that; {cure}."
        )
    return newer


def is_changed(root):
    """Whether a checkout differs from its commit; what git cannot tell counts as a difference."""
    ended = commands.run(["git", "-C", root, "status", "--porcelain", "--untracked-files=no"], 30)
    return not ended.passed or bool(ended.text.strip())


def build(root, folder):
    """Builds what is packed."""
    targets = [target for names in TARGETS.values() for target in names]
    for command in (["cmake", "--preset", "portable"], ["cmake", "--build", folder, "--target", *targets]):
        done = subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{done.stdout[-3000:]}\n{' '.join(command[:3])} fails; nothing was packed.")


def collect(root, folder, data):
    """(name in the archive, path) of what is packed; programs that resemble each other lie together."""
    files = []
    for inside, names in TARGETS.items():
        for name in names:
            path = os.path.join(folder, inside, name)
            if not os.path.exists(path):
                sys.exit(f"{path} is not built; nothing was packed.")
            files.append((os.path.join(inside, name), path))
    for name in TEXTS + (["data/mnist"] if data else []):
        path = os.path.join(root, name)
        inside = (
            [path]
            if os.path.isfile(path)
            else [
                os.path.join(at, each)
                for at, _, names in sorted(os.walk(path))
                for each in sorted(names)
                if "__pycache__" not in at
            ]
        )
        files += [(os.path.relpath(each, root), each) for each in inside]
    return files


def compress(files, about, temporary):
    """The archive's bytes."""
    buffer = io.BytesIO()

    def add(archive, name, data, mode):
        entry = tarfile.TarInfo(f"{INSIDE}/{name}")
        entry.size, entry.mode, entry.mtime = len(data), mode, about["time"]
        archive.addfile(entry, io.BytesIO(data))

    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as archive:
        how = HOW.format(name=NAME, libc=about["libc"], commit=about["commit"] or "an unknown commit")
        add(archive, "README.txt", how.encode(), 0o644)
        add(archive, "packed.json", json.dumps(about, indent=1).encode(), 0o644)
        for name, path in files:
            executable = os.access(path, os.X_OK)
            with open(stripped(path, temporary) if executable else path, "rb") as file:
                add(archive, name, file.read(), 0o755 if executable else 0o644)
    return buffer.getvalue()


def stripped(path, temporary):
    """The program without symbols, where there is a `strip`; scripts stay as they are."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF" or not shutil.which("strip"):
            return path
    to = os.path.join(temporary, os.path.basename(path))
    subprocess.run(["strip", "-o", to, path], check=True)
    return to


def make(options, temporary):
    """Writes the archive, or refuses; the last line printed is its size."""
    root, to = options.root, os.path.abspath(options.pack)
    folder = options.build or os.path.join(root, "build", "portable")
    if not options.build:
        build(root, folder)
    files = collect(root, folder, options.data_too)
    programs = [path for name, path in files if os.path.dirname(name) in TARGETS]
    newer = refuse_newer_libc(programs, options.newer_glibc)
    commit = commands.commit_of(root)
    now = datetime.datetime.now(datetime.timezone.utc)
    about = {
        "date": now.isoformat(timespec="seconds"),
        "time": int(now.timestamp()),
        "commit": commit,
        "changed": bool(commit) and is_changed(root),
        "compiler": commands.output_of(["c++", "--version"]).split("\n")[0],
        "libc": " ".join(platform.libc_ver()),
        "needs_libc": needs_libc(programs),
    }
    data = compress(files, about, temporary)
    mib, beside = len(data) / MIB, 0 if options.data_too else tracked_bytes(root) / MIB
    if mib > MOST:
        sys.exit(f"The archive would take {mib:.1f} MiB, more than {MOST}; nothing was written.")
    if mib + beside > options.limit:
        sys.exit(
            f"The archive of {mib:.1f} MiB and the repository's {beside:.1f} MiB exceed {options.limit} MiB"
            " (--limit); nothing was written."
        )
    os.makedirs(to, exist_ok=True)
    path = os.path.join(to, NAME)
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)
    print(f"{path}, wants glibc {about['needs_libc'] or 'of any version'}")
    if newer:
        print(f"Programs do not start on Ubuntu 22.04 (glibc 2.35), because of {', '.join(newer)}.")
    print(
        "In a checkout with this archive in its root or in build/gpu_pack:  scripts/gpu_check --first --out"
        " results"
    )
    print(f"Without a checkout:  tar xf {NAME} && gpu_pack/scripts/gpu_check --first --out results")
    print(f"With the repository's own files {mib + beside:.1f} of at most {options.limit} MiB.")
    print(f"{mib:.1f} MiB")


# ---- on the other machine


def find(root):
    """The archive beside a checkout, or None."""
    folders = [os.path.join(root, "build", "gpu_pack"), root, os.path.join(root, "gpu_pack"), os.getcwd()]
    return next(
        (path for path in (os.path.join(folder, NAME) for folder in folders) if os.path.isfile(path)), None
    )


def unpack(path, into):
    """Unpacks into a folder named by the archive's content, unless that was done; the folder of the
    programs."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
    folder = os.path.join(into, digest)
    if not os.path.exists(os.path.join(folder, INSIDE, "packed.json")):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + ".new", exist_ok=True)
        with tarfile.open(path) as archive:
            for entry in archive:
                write_entry(archive, entry, folder + ".new")
        os.rename(folder + ".new", folder)
    return os.path.join(folder, INSIDE)


def write_entry(archive, entry, folder):
    """One file of the archive; what is no plain file, or would lie elsewhere, is refused."""
    parts = entry.name.split("/")
    if not entry.isreg() or entry.name.startswith("/") or ".." in parts or parts[0] != INSIDE:
        sys.exit(f"The archive holds {entry.name!r}, which no archive of gpu_check holds; nothing was run.")
    to = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with archive.extractfile(entry) as source, open(to, "wb") as file:
        shutil.copyfileobj(source, file)
    os.chmod(to, 0o755 if entry.mode & 0o100 else 0o644)


def read_about(folder):
    """packed.json of an unpacked folder, or an empty one."""
    try:
        with open(os.path.join(folder, "packed.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}
