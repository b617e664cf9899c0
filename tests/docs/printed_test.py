#!/usr/bin/env python3
"""What the READMEs print beside programs: each command of hearth and each of its options exists,
lines for a shell are such, JSON is JSON, YAML is what Hearth takes, and config/README.md shows what
`hearth config` and `hearth serve --check-config` say.

    printed_test.py SOURCES HEARTH
"""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE_SECONDS = 60
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "config/README.md", "packaging/README.md", "plugin-api/README.md", "plugin-api/from-cloudflare.md",
             "plugin-api/template/README.md", "tests/README.md", "tests/e2e/README.md",
             "clients/python/README.md", "clients/js/README.md")

# What the package installs.
UNIT, SETTINGS = "packaging/debian/hearth.service", "packaging/debian/hearth.yaml"

# The languages of fences, and the test of each. Fences without a language are pictures, and outputs
# that have a test below.
TRIED_ELSEWHERE = {"cpp": "extract.py", "js": "extract.py; tests/e2e/objects.test.mjs",
                   "ts": "the other system", "python": "tests/clients/python_test.py", "cmake": "by_hand_test.py",
                   "console": "tests/e2e/transcript.test.mjs; by_hand_test.py",
                   "text": "a picture", "mermaid": "a picture", "": "a picture or an output"}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# These files have the mistakes that config/README.md shows, in the order of its lines.
MISTAKEN = {
    "hearth.yaml": 'lisen: "127.0.0.1:8787"\nshards: many\nlimits:\n  max_frame: 4MB\n  call_timeout: 30\n',
    "classes/counter.yaml": "class: counter\nidle-timeout: 5m\ndurability: disk\n",
}

problems = []


def run(*command, cwd=None):
    return subprocess.run([str(part) for part in command], cwd=cwd, timeout=PATIENCE_SECONDS, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


@functools.cache
def help_of(hearth, *command):
    """What `hearth COMMAND --help` says. Behind a word that is no command, it is the help of what
    comes before."""
    return run(hearth, *command, "--help").stdout


def check_command(hearth, document, words):
    """The words after `hearth`: a command, perhaps one of its own commands, options and values."""
    printed = " ".join(["hearth", *words])
    command = []
    for word in words[:2]:
        if not re.fullmatch(r"[a-z][a-z-]*", word) or help_of(hearth, *command, word) == help_of(hearth, *command):
            break
        command.append(word)
    if not command and not words[0].startswith("-"):
        problems.append(f"{document}: `{printed}`: there is no such command")
        return
    known = help_of(hearth, *command)
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", printed):
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", known) and option != "--help":
            problems.append(f"{document}: `{printed}`: there is no option {option}")


def commands_of(text):
    """The commands of hearth in code: between backticks, in indented lines and in fences."""
    code = []
    for language, snippet in FENCE.findall(text):
        typed = re.findall(r"^\$ .*", snippet, re.MULTILINE)
        code.append("\n".join(typed) if typed or language == "console" else snippet)
    prose = FENCE.sub("", text)
    code += re.findall(r"^ {4}(\S.*)$", prose, re.MULTILINE)
    code += [span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", prose)]
    for piece in code:
        for line in re.split(r"\n|&&|\|", piece):
            # Behind two spaces a line says what it does.
            line = re.split(r"\s{2,}|\s#\s", line.strip())[0]
            match = re.match(r"(?:\$ |sudo -u hearth |Exec\w+=)?(?:/\S*/)?hearth ((?:[a-z]|--).*)$", line)
            if match:
                yield match.group(1).split()


def check_shell(sources, document, text):
    """Indented lines are for a shell, but for the client that tests/e2e/transcript.test.mjs runs,
    and pictures."""
    for block in re.findall(r"(?:^ {4}\S.*\n\n?(?: {4}.*\n\n?)*)", FENCE.sub("", text), re.MULTILINE):
        if "import {" in block or re.search(r"--->|<---", block):
            continue
        lines = [re.split(r"\s{2,}", line.strip())[0] for line in block.splitlines() if line.strip()]
        script = "\n".join(lines).replace("[", "\\[").replace("...", "")
        checked = subprocess.run(["bash", "-n"], input=script, text=True, stderr=subprocess.PIPE)
        if checked.returncode != 0:
            problems.append(f"{document}: a shell does not take this: {script}\n{checked.stderr}")
        for line in lines:
            first = line.split()[0]
            if re.match(r"(packaging|tests|plugin-api)/", first) and not (sources / first).exists():
                problems.append(f"{document}: {first} does not exist")


CLASS_FILE = re.compile(r"(#.*\n)*class:")


def check_yaml(hearth, document, text):
    """A server file has no mistake. What belongs to others is at least YAML: then its one unknown
    key is what Hearth says of it."""
    with tempfile.TemporaryDirectory(prefix="hearth-printed-") as scratch:
        file = pathlib.Path(scratch) / "printed.yaml"
        if "certificate:" in text:  # the files that it names must be there
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-subj", "/CN=printed", "-keyout", f"{scratch}/privkey.pem", "-out", f"{scratch}/fullchain.pem"],
                           check=True, capture_output=True, timeout=60)
            text = text.replace("/etc/hearth/tls", scratch)
        (file.parent / "classes").mkdir()
        if CLASS_FILE.match(text):
            (file.parent / "classes" / "printed.yaml").write_text(text)
            text = "classes: classes\n"
        file.write_text(text)
        answer = run(hearth, "serve", "--config", file, "--check-config")
        mistake = r'\S+:1:1: unknown key "scrape_configs".*\nhearth: 1 mistake in the configuration\n'
        if answer.returncode == 0 or text.startswith("scrape_configs:") and re.fullmatch(mistake, answer.stdout):
            return
        problems.append(f"{document}: {answer.stdout}")


def check_unit(document, text):
    """systemd takes the unit as it is, the path of the server aside. Where there is no systemd, its
    lines are at least such."""
    for line in text.splitlines():
        if not re.fullmatch(r"\[[A-Z]\w+\]|[A-Z]\w+=\S.*|#.*|", line):
            problems.append(f"{document}: no line of a unit: {line}")
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    with tempfile.TemporaryDirectory(prefix="hearth-printed-") as scratch:
        unit = pathlib.Path(scratch) / "hearth.service"
        unit.write_text(re.sub(r"=/usr/bin/hearth\b", "=/bin/true", text))
        answer = run(analyze, "verify", "--man=no", unit)
    said = [line for line in answer.stdout.splitlines() if "hearth.service" in line]  # an unknown key is status 0
    if answer.returncode != 0 or said:
        problems.append(f"{document}: systemd-analyze says of the unit: {answer.stdout}")


def check_fences(hearth, document, text):
    for language, snippet in FENCE.findall(text):
        if language == "json":
            try:
                json.loads(snippet)
            except json.JSONDecodeError as mistake:
                problems.append(f"{document}: {mistake}: {snippet}")
        elif language == "yaml":
            check_yaml(hearth, document, snippet)
        elif language not in TRIED_ELSEWHERE and language != "yaml":
            problems.append(f"{document}: no test tries a fence in {language}")


def fence_with(text, part):
    return next(snippet for _, snippet in FENCE.findall(text) if part in snippet)


def check_settings(sources, hearth):
    """The rows that config/README.md shows of `hearth config` are among those that it prints."""
    printed = fence_with((sources / "config/README.md").read_text(), "SETTING ")
    command, *rows = printed.splitlines()
    answer = run(hearth, *command.split()[2:], cwd=sources).stdout
    said = [re.split(r"\s{2,}", line) for line in answer.splitlines()]
    for row in rows:
        if row == "...":
            continue
        if re.split(r"\s{2,}", row.replace("/home/ann/hearth", str(sources))) not in said:
            like = next((" ".join(cells) for cells in said if cells[0] == row.split()[0]), "nothing of the kind")
            problems.append(f"config/README.md: `{command[2:]}` does not print\n  {row}\nbut\n  {like}")


def check_mistakes(sources, hearth):
    printed = fence_with((sources / "config/README.md").read_text(), "unknown key")
    with tempfile.TemporaryDirectory(prefix="hearth-printed-") as scratch:
        for name, text in MISTAKEN.items():
            file = pathlib.Path(scratch) / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        answer = run(hearth, "serve", "--config", "hearth.yaml", "--check-config", cwd=scratch)
    if answer.returncode != 2 or answer.stdout.replace(f"{scratch}/", "") != printed:
        problems.append(f"config/README.md: the mistakes are told so:\n{answer.stdout}")


def main(sources, hearth):
    for document in DOCUMENTS:
        text = (sources / document).read_text()
        if document.startswith("plugin-api/template/"):
            text = text.replace("@NAME@", "greeter").replace("@FILE@", "greeter").replace("@CLASS@", "Greeter")
        for words in commands_of(text):
            check_command(hearth, document, words)
        check_shell(sources, document, text)
        check_fences(hearth, document, text)
    for document, check in ((UNIT, check_unit), (SETTINGS, functools.partial(check_yaml, hearth))):
        text = (sources / document).read_text()
        for words in commands_of(f"```\n{text}```\n"):
            check_command(hearth, document, words)
        check(document, text)
    check_settings(sources, hearth)
    check_mistakes(sources, hearth)
    if problems:
        sys.exit("printed_test: " + "\n".join(problems))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
