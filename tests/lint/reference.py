#!/usr/bin/env python3
"""Fails when the tables of settings in config/README.md are not those that hearth prints; --fix
writes them."""
import pathlib
import subprocess
import sys


def with_reference(text: str, of: str, reference: str) -> str:
    """The text with the lines between the two markers replaced."""
    begin = f"<!-- hearth config --reference {of} -->\n"
    end = "<!-- end of the reference -->\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"reference: config/README.md has no {begin.strip()} with an end")
    return before + begin + reference + end + after


def main() -> int:
    fix = "--fix" in sys.argv
    hearth, readme = (pathlib.Path(each) for each in sys.argv[1:] if each != "--fix")
    text = fresh = readme.read_text()
    for of in ("server", "class"):
        answer = subprocess.run([hearth, "config", "--reference", of], check=True, capture_output=True, text=True)
        fresh = with_reference(fresh, of, answer.stdout)
    if fresh == text:
        print("reference: ok")
        return 0
    if fix:
        readme.write_text(fresh)
        print(f"reference: {readme} is written anew")
        return 0
    stale = [line for line in fresh.splitlines() if line not in text.splitlines()]
    print(f"reference: {readme} does not say what the settings are. What should stand there:")
    print("\n".join(stale))
    print(f"Write it with: python3 {sys.argv[0]} --fix {hearth} {readme}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
