#!/usr/bin/env python3
"""An author's way, outside of this tree: install the SDK, fill in the template, build it, pass its tests.

usage: check_template.py BUILD_DIR TEMPLATE_DIR C_COMPILER CXX_COMPILER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

NAMES = {"@NAME@": "night-watch", "@FILE@": "night_watch", "@CLASS@": "NightWatch"}


def fill(text):
    for placeholder, name in NAMES.items():
        text = text.replace(placeholder, name)
    return text


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def main():
    build, template = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    place = pathlib.Path(tempfile.mkdtemp(prefix="hearth-template-"))
    try:
        run("cmake", "--install", build, "--component", "sdk", "--prefix", place / "prefix")
        for source in sorted(p for p in template.rglob("*") if p.is_file()):
            target = place / "project" / fill(str(source.relative_to(template)))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fill(source.read_text()))
        project = place / "project"
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={place / 'prefix'}", "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_C_COMPILER={sys.argv[3]}", f"-DCMAKE_CXX_COMPILER={sys.argv[4]}")
        run("cmake", "--build", project / "build", "-j", "2")
        print(run("ctest", "--test-dir", project / "build", "--output-on-failure", "--no-tests=error"))
        library = project / "build/plugins/night-watch.so"
        print(run(sys.executable, pathlib.Path(__file__).with_name("check_exports.py"), library))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
