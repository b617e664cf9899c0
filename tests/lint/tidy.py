#!/usr/bin/env python3
"""Fails when clang-tidy 19 finds something.

    tidy.py BUILD              looks at the whole tree
    tidy.py BUILD PLACE...     at these files or folders
    tidy.py BUILD --changed    at what differs from the commit in tests/lint/tidy-base, which was
                               looked at whole
    tidy.py --self-test        checks what it adds to clang-tidy

BUILD is a build that compiles each source by itself: only its compile commands are read.

Each header of the SDK that differs, or includes one that does, is also compiled by itself, with
more warnings than its users may ask for.

Almost all of clang-tidy's time goes into what a source includes, not into the source. So sources
that are compiled alike are read as one, which makes the whole tree a matter of minutes. Two that
cannot be read as one, since each has something of its own by the same name, go into different
groups; the compiler is asked first.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["host", "plugin-api", "plugins", "tests"]
SKIPPED = {"node_modules", "coroutine_probes", "thread_safety_probes", "template"}
# Larger groups of files save little, and leave one processor idle at the end.
MOST_TOGETHER = 24
BASE = ROOT / "tests/lint/tidy-base"
# A change of one of these may find something in any file.
RULES = re.compile(r"(^|/)\.clang-tidy$|^tests/lint/tidy\.py$")
# Not .h: the C interface has C's style.
HEADERS = r"(%s)/.*\.([hi]pp|cpp)$" % "|".join(FOLDERS)
SDK = ("plugin-api/include", "plugin-api/chat/include")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wconversion", "-Wshadow", "-Werror")
PLACE = re.compile(r"^(/[^:]+|[^/:\s][^:]*):\d+:\d+: (?P<kind>fatal error|error|warning|note): ")

Flags = tuple[str, ...]
Pool = concurrent.futures.ThreadPoolExecutor


class Group:
    """Sources that are read as one, as a file that includes them."""

    def __init__(self, source: pathlib.Path, files: list[str], flags: Flags):
        self.source = source
        self.files = files
        self.flags = flags

    def write(self) -> None:
        lines = [f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in self.files]
        self.source.write_text("".join(lines))

    def title(self) -> str:
        folders = sorted({str(pathlib.Path(file).parent.relative_to(ROOT)) for file in self.files})
        return f"{len(self.files)} of {', '.join(folders)}"


def is_ours(file: pathlib.Path) -> bool:
    if not file.is_relative_to(ROOT) or not file.is_file():
        return False
    parts = file.relative_to(ROOT).parts
    return parts[0] in FOLDERS and not SKIPPED & set(parts) and file.suffix in {".cpp", ".hpp", ".ipp"}


def compiled(build: pathlib.Path) -> dict[str, Flags]:
    """Each C++ source with the flags that it is compiled with, the first ones if it is compiled
    more than once."""
    flags: dict[str, Flags] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = entry["file"]
        if file in flags or not is_ours(pathlib.Path(file)):
            continue
        words = shlex.split(entry["command"])
        del words[words.index("-o") : words.index("-o") + 2]
        # The build reports compiler warnings. Here they would be errors, since files are read
        # together.
        flags[file] = tuple(word for word in words[1:] if word not in ("-c", file) and not word.startswith("-W"))
        # A library has one entry; two of them can be read together without.
        flags[file] += ("-w", "-DHEARTH_NO_ENTRY")
    return flags


def flags_of(file: pathlib.Path, known: dict[str, Flags]) -> Flags:
    """A header has none of its own: those of a source beside it do, of a plugin for the SDK, or of
    one that includes it."""
    if str(file) in known:
        return known[str(file)]
    include = re.compile(r'#include ["<](\S*/)?%s[">]' % re.escape(f"{file.parent.name}/{file.name}"))
    beside = file.parent
    if file.is_relative_to(ROOT / "plugin-api"):
        beside = "plugin-api/chat" if file.is_relative_to(ROOT / "plugin-api/chat") else "plugins"
    users = [source for source in known if pathlib.Path(source).is_relative_to(ROOT / beside)]
    users = users or [source for source in known if include.search(pathlib.Path(source).read_text())]
    if not users:
        sys.exit(f"tidy: no source of this build is beside {file}, or includes it")
    return max((known[user] for user in users), key=len)


def strangers(group: Group) -> set[str]:
    """The files that cannot be read after the ones before them, or some of these: the compiler does
    not say everything at once."""
    group.write()
    command = ["clang++-19", "-fsyntax-only", "-ferror-limit=0", "-fno-caret-diagnostics", *group.flags, str(group.source)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return set()
    found: set[str] = set()
    in_a_header = False
    for line in run.stderr.splitlines():
        place = PLACE.match(line)
        if place is None:
            continue
        if place["kind"] != "note":
            in_a_header = place[1] not in group.files
        if place[1] in group.files and (place["kind"] != "note" or in_a_header):
            found.add(place[1])
    if found:
        return found
    # Headers that contradict each other, or a header with an error, which clang-tidy reports.
    alone = [*command[:-1], group.files[0]]
    return set(group.files[1:]) if subprocess.run(alone, capture_output=True).returncode == 0 else set()


def take_apart(group: Group) -> list[str]:
    """Leaves in the group what can be read together, and gives the rest."""
    rest: list[str] = []
    while len(group.files) > 1 and (apart := strangers(group)):
        together = [file for file in group.files if file not in apart] or group.files[:1]
        rest += [file for file in group.files if file not in together]
        group.files = together
    group.write()
    return rest


def compiled_alike(files: list[pathlib.Path], known: dict[str, Flags]) -> dict[tuple[str, Flags], list[str]]:
    """The files by top folder, which has rules of its own, and by flags that all of them can live
    with."""
    alike: dict[tuple[str, str, Flags], dict[str, Flags]] = collections.defaultdict(dict)
    for file in files:
        flags = flags_of(file, known)
        rest = tuple(flag for flag in flags if flag.startswith("-") and flag[1] not in "DIi")
        place = file.relative_to(ROOT)
        # The server and its tests are read together. The SDK has types of the same names, so it is
        # read alone.
        world = "" if place.parts[0] != "tests" or (ROOT / "host" / place.parts[1]).is_dir() else place.parts[1]
        alike[place.parts[0], world, rest][str(file)] = flags
    joined: dict[tuple[str, Flags], list[str]] = {}
    for (folder, _, _), members in alike.items():
        buckets: list[tuple[dict[str, str], dict[Flags, None], list[str]]] = []
        for file, flags in members.items():
            macros = dict(flag.partition("=")[::2] for flag in flags if flag.startswith("-D"))
            for values, union, sources in buckets:
                if all(values.get(macro, value) == value for macro, value in macros.items()):
                    break
            else:
                values, union, sources = {}, {}, []
                buckets.append((values, union, sources))
            values.update(macros)
            union.update(dict.fromkeys(paired(flags)))
            sources.append(file)
        for _, union, sources in buckets:
            joined.setdefault((folder, tuple(word for flag in union for word in flag)), []).extend(sources)
    return joined


def paired(flags: Flags) -> list[Flags]:
    """Each flag with its value: `-isystem` and its folder are two words."""
    pairs: list[Flags] = []
    for flag in flags:
        if flag.startswith("-"):
            pairs.append((flag,))
        else:
            pairs[-1] += (flag,)
    return pairs


def groups_of(alike: dict[tuple[str, Flags], list[str]], place: pathlib.Path, pool: Pool) -> list[Group]:
    groups: list[Group] = []
    waiting = alike
    number = 0
    while waiting:
        tried = []
        for (folder, flags), files in waiting.items():
            files = sorted(files)
            for begin in range(0, len(files), MOST_TOGETHER):
                number += 1
                source = place / folder / f"{number}.cpp"
                source.parent.mkdir(parents=True, exist_ok=True)
                tried.append((folder, Group(source, files[begin : begin + MOST_TOGETHER], flags)))
        waiting = collections.defaultdict(list)
        for (folder, group), rest in zip(tried, pool.map(take_apart, [group for _, group in tried])):
            waiting[folder, group.flags] += rest
            groups.append(group)
        waiting = {key: files for key, files in waiting.items() if files}
    return groups


def findings(group: Group) -> tuple[Group, list[str], float]:
    begin = time.monotonic()
    command = ["clang-tidy-19", "-quiet", f"-header-filter={HEADERS}", str(group.source), "--", *group.flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = [line.removeprefix(f"{ROOT}/") for line in run.stdout.splitlines()]
    said = [line for line in said if (place := PLACE.match(line)) and place["kind"] != "note"]
    # clang-tidy takes an included file for a header.
    found = [line for line in said if not (".cpp:" in line and "[google-global-names-in-headers" in line)]
    if run.returncode != 0 and not said:  # it could not even begin
        found = [f"{group.title()}: {run.stdout}{run.stderr}"]
    return group, [line.replace(",-warnings-as-errors]", "]") for line in found], time.monotonic() - begin


def copy_rules(place: pathlib.Path) -> None:
    """clang-tidy looks for its rules in the folders above the file that it is given."""
    for folder in [".", *FOLDERS]:
        if (ROOT / folder / ".clang-tidy").exists():
            (place / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / folder / ".clang-tidy", place / folder)


def wanted(asked: list[str], known: dict[str, Flags]) -> list[pathlib.Path]:
    found: dict[pathlib.Path, None] = {}
    for path in (pathlib.Path(each).resolve() for each in asked):
        if path.is_dir():
            found.update(dict.fromkeys(file for file in map(pathlib.Path, known) if file.is_relative_to(path)))
        elif is_ours(path):
            found[path] = None
    return list(found)


def git(*command: str) -> str | None:
    run = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def changed() -> list[str] | None:
    """What differs from the base, by name; None if only the whole tree will do."""
    base = BASE.read_text().split()[-1]
    differs = git("diff", "--name-only", "--no-renames", "-z", base, "--")
    if differs is None:
        print(f"tidy: the base {base} is not in this clone, so all of it is looked at")
        return None
    names = (differs + (git("ls-files", "--others", "--exclude-standard", "-z") or "")).split("\0")
    if rules := [name for name in names if RULES.search(name)]:
        print(f"tidy: {rules[0]} differs from the base, so all is looked at")
        return None
    return [str(ROOT / name) for name in names if name]


class Stamps:
    """Which sources compile by themselves, and what that was true of: flags, compiler, and each
    file that was read. Files of this tree are compared by content, so that another checkout finds
    them unchanged; those of the system by size and time.

    One file a source, in a folder that all checkouts of this user share."""

    def __init__(self, folder: pathlib.Path, root: pathlib.Path = ROOT):
        self.folder = folder
        self.root = root
        self.compiler = subprocess.run(["clang++-19", "--version"], capture_output=True, text=True).stdout
        self.digests: dict[str, str] = {}

    def digest(self, path: str) -> str:
        """Of a file as the stamp names it; "" if it is gone."""
        if path not in self.digests:
            file = self.root / path
            try:
                status = file.stat()
                of_system = pathlib.Path(path).is_absolute()
                self.digests[path] = (f"{status.st_size} {status.st_mtime_ns}" if of_system
                                      else hashlib.sha256(file.read_bytes()).hexdigest())
            except OSError:
                self.digests[path] = ""
        return self.digests[path]

    def stamp(self, file: pathlib.Path, flags: Flags) -> pathlib.Path:
        said = "\0".join([self.compiler, str(file.relative_to(self.root)), *flags]).replace(str(self.root), "")
        return self.folder / f"{hashlib.sha256(said.encode()).hexdigest()}.json"

    def holds(self, stamp: pathlib.Path) -> bool:
        try:
            return all(digest and self.digest(path) == digest for path, digest in json.loads(stamp.read_text()).items())
        except (OSError, ValueError):
            return False

    def keep(self, stamp: pathlib.Path, rule: str) -> None:
        """`rule`: what the compiler has written for make."""
        read = re.sub(r"\\\n", " ", rule).split(": ", 1)[1].split()
        paths = [os.path.normpath(os.path.join(self.root, path)) for path in read]
        inside = f"{self.root}/"
        paths = [path.removeprefix(inside) for path in paths]
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = stamp.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({path: self.digest(path) for path in paths}))
        unfinished.rename(stamp)


def cannot_stand_alone(file: pathlib.Path, flags: Flags, stamps: Stamps) -> tuple[list[str], bool]:
    """A source that is only ever compiled behind others may lack an include. And whether the
    compiler was asked."""
    stamp = stamps.stamp(file, flags)
    if stamps.holds(stamp):
        return [], False
    with tempfile.TemporaryDirectory() as place:
        rule = pathlib.Path(place, "rule")
        command = ["clang++-19", "-fsyntax-only", *flags, "-MD", "-MF", str(rule), str(file)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == 0:
            stamps.keep(stamp, rule.read_text())
    lines = [line for line in run.stderr.splitlines() if (place := PLACE.match(line)) and "error" in place["kind"]]
    return [line.removeprefix(f"{ROOT}/") for line in lines], True


def reached(changed: set[str], includes: dict[str, set[str]]) -> set[str]:
    """The headers that differ, and those that include one of them, or one of those."""
    found = changed & set(includes)
    while more := {name for name, used in includes.items() if used & found} - found:
        found |= more
    return found


def sdk_headers(places: list[str] | None) -> list[pathlib.Path]:
    """Those that differ or include one that does; without places all."""
    headers = {str(path.relative_to(ROOT / folder)): path
               for folder in SDK for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".hpp", ".h")}
    includes = {name: set(re.findall(r'#include [<"](hearth/[^">]+)', path.read_text())) for name, path in headers.items()}
    roots = [ROOT] if places is None else [pathlib.Path(place).resolve() for place in places]
    wanted = {name for name, path in headers.items() if any(path.is_relative_to(root) for root in roots)}
    return [headers[name] for name in sorted(reached(wanted, includes)) if name.endswith(".hpp")]


def compile_alone(files: list[tuple[pathlib.Path, Flags]], pool: Pool) -> set[str]:
    """What the compiler says of them."""
    begin = time.monotonic()
    stamps = Stamps(pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "hearth-tidy"))
    seen: set[str] = set()
    asked_for = 0
    for found, was_asked in pool.map(lambda each: cannot_stand_alone(*each, stamps), files):
        seen.update(found)
        asked_for += was_asked
    print("\n".join(sorted(seen)) or f"tidy: {len(files)} files compile by themselves; {asked_for} were tried, "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return seen


def check(build: pathlib.Path, asked: list[str]) -> int:
    begin = time.monotonic()
    known = compiled(build)
    only_changed = asked == ["--changed"]
    places = changed() if only_changed else asked or None
    files = list(map(pathlib.Path, known)) if places is None else wanted(places, known)
    jobs = int(os.environ.get("HEARTH_TIDY_JOBS", os.cpu_count() or 1))
    with tempfile.TemporaryDirectory(dir=build, prefix="tidy-") as place, Pool(jobs) as pool:
        copy_rules(pathlib.Path(place))
        alone = [(header, tuple(flag for flag in flags_of(header, known) if flag != "-w") + STRICT)
                 for header in sdk_headers(places)]
        if only_changed and places is not None:
            alone += [(file, known[str(file)]) for file in files if str(file) in known]
        seen = compile_alone(alone, pool)
        groups = groups_of(compiled_alike(files, known), pathlib.Path(place), pool)
        groups.sort(key=lambda group: -len(group.files))
        print(f"tidy: {len(files)} files in {len(groups)} groups, {time.monotonic() - begin:.0f} s to find them", flush=True)
        done = [pool.submit(findings, group) for group in groups]
        for number, future in enumerate(concurrent.futures.as_completed(done), 1):
            group, found, seconds = future.result()
            print(f"[{number}/{len(groups)}] {group.title()}: {seconds:.1f} s", flush=True)
            for line in found:
                if line not in seen:
                    print(line, flush=True)
                    seen.add(line)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = f"{len(seen)} findings" if seen else "ok"
    print(f"tidy: {verdict} in {len(files)} files, {time.monotonic() - begin:.0f} s, "
          f"{usage.ru_utime + usage.ru_stime:.0f} s of processor time")
    return 1 if seen else 0


def stands_alone_once() -> bool:
    """The compiler is asked about a source again when it, or what it includes, is another; also
    once it does not compile."""
    flags = ("-std=c++20",)
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place).resolve()
        source, header = root / "a.cpp", root / "a.hpp"
        source.write_text('#include "a.hpp"\nNumber one = 1;\n')

        def tried() -> tuple[bool, bool]:
            found, was_asked = cannot_stand_alone(source, flags, Stamps(root / "stamps", root))
            return bool(found), was_asked

        header.write_text("using Number = int;\n")
        answers = [tried(), tried()]
        header.write_text("using Number = long;\n")
        answers += [tried(), tried()]
        header.write_text("using Count = long;\n")
        answers += [tried(), tried()]
        header.unlink()
        answers += [tried()]
    right = answers == [(False, True), (False, False)] * 2 + [(True, True)] * 3
    if not right:
        print(f"tidy: compiled by itself: {answers}")
    return right


def self_test() -> int:
    """Two of three sources cannot be read as one; what is wrong is found in whatever they are read
    with."""
    sources = {
        "clear.cpp": "using Length = long;\n",
        "first.cpp": "namespace {\nconstexpr int kLimit = 1;\n}\ntypedef int Number;\n",
        "second.cpp": "namespace {\nconstexpr int kLimit = 2;\n}\ntypedef int Count;\n",
    }
    with tempfile.TemporaryDirectory() as place, Pool() as pool:
        folder = pathlib.Path(place, "host")
        folder.mkdir()
        for name, text in sources.items():
            (folder / name).write_text(text)
        copy_rules(pathlib.Path(place))
        groups = groups_of({("host", ("-std=c++20",)): [str(folder / name) for name in sources]}, pathlib.Path(place), pool)
        together = [[pathlib.Path(file).name for file in group.files] for group in groups]
        found = [line.removeprefix(f"{folder}/") for group in groups for line in findings(group)[1]]
    right = stands_alone_once() and reached({"b"}, {"a": {"b"}, "b": set(), "c": {"a"}, "d": {"e"}}) == {"a", "b", "c"}
    right = right and together == [["clear.cpp", "first.cpp"], ["second.cpp"]]
    right = right and [line.split(":")[0] for line in found] == ["first.cpp", "second.cpp"]
    right = right and all("[modernize-use-using]" in line for line in found)
    print("tidy: ok" if right else f"tidy: wrong groups or findings: {together} {found}")
    return 0 if right else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    sys.exit(check(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]))
