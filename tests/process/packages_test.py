#!/usr/bin/env python3
"""The Debian packages: they hold what they should and nothing else, lintian finds no error in
hearth (clean_root_test.py: in both), and unpacked they work: a server answers, and serves a library
that is built against libhearth-dev.

    packages_test.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER
"""
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from installed_test import increment, serving

PATIENCE_SECONDS = 240

# Each pattern has a file, and each file a pattern.
HOLDS = {
    "hearth": """
        ./etc/hearth/hearth.yaml ./etc/hearth/classes/
        ./lib/systemd/system/hearth.service ./lib/systemd/system/hearth-backup.service
        ./lib/systemd/system/hearth-backup.timer ./usr/lib/sysusers.d/hearth.conf ./usr/lib/tmpfiles.d/hearth.conf
        ./usr/bin/hearth ./usr/lib/hearth/plugins/*.so
        ./usr/share/bash-completion/completions/hearth ./usr/share/man/man1/hearth.1.gz
        ./usr/share/doc/hearth/copyright ./usr/share/doc/hearth/changelog.gz ./usr/share/doc/hearth/CHANGELOG.md
        ./usr/share/doc/hearth/console-notices.txt
        ./usr/share/doc/hearth/config/README.md ./usr/share/doc/hearth/packaging/README.md
        ./usr/share/doc/hearth/examples/hearth.yaml ./usr/share/doc/hearth/examples/classes/*.yaml
        ./usr/share/doc/hearth/examples/hearth-alerts.yml
        ./usr/share/lintian/overrides/hearth""",
    "libhearth-dev": """
        ./usr/include/hearth/*.h ./usr/include/hearth/*.hpp
        ./usr/lib/libhearth_plugin_api.a ./usr/lib/libhearth_chat.a ./usr/lib/libhearth_testing.a
        ./usr/lib/cmake/Hearth/*.cmake ./usr/lib/cmake/Hearth/plugin.map
        ./usr/share/hearth/rust/*
        ./usr/share/doc/libhearth-dev/copyright ./usr/share/doc/libhearth-dev/changelog.gz""",
}

PROJECT = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Hearth REQUIRED)
hearth_add_plugin(tiny tiny.cpp)
target_link_libraries(tiny PRIVATE Hearth::chat)
hearth_add_plugin_test(tiny_test tiny_test.cpp)
""",
    "tiny.cpp": """
#include <hearth/agent.hpp>
class Tiny : public hearth::Agent {
  hearth::Task<hearth::Response> on_request(const hearth::Request&) override {
    return hearth::Response::json({{"tiny", true}});
  }
};
HEARTH_PLUGIN("tiny", "1.0.0", Tiny)
""",
    "tiny_test.cpp": """
#include "tiny.cpp"
#include <hearth/testing/host.hpp>
#include <gtest/gtest.h>
TEST(TinyTest, Answers) {
  hearth::testing::Host host;
  EXPECT_EQ(host.create<Tiny>("a").request("GET").body, R"({"tiny":true})");
}
""",
}


def fail(text):
    sys.exit(f"packages_test: {text}")


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], timeout=PATIENCE_SECONDS, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def pack(build, version, place):
    """The packages of this version, by name, in the directory. The server in them says the version
    that it was built with."""
    run("cpack", "--config", f"{build}/CPackConfig.cmake", "-G", "DEB", "-R", version, "-B", place)
    shutil.rmtree(place / "_CPack_Packages")
    return {name: next(place.glob(f"{name}_*.deb")) for name in HOLDS}


def check_contents(name, package):
    entries = [line.split(maxsplit=5) for line in run("dpkg-deb", "--contents", package).splitlines()]
    wrong = [entry[5] for entry in entries if entry[1] != "root/root" or re.match(".[-rwxst]{4}w|.[-rwxst]{7}w", entry[0])]
    if wrong:
        fail(f"{name}: others than root can change {wrong}")
    held = {entry[5] for entry in entries}
    # A directory that is named is empty; others are there for what they hold.
    held = {path for path in held if not path.endswith("/") or not any(other != path and other.startswith(path) for other in held)}
    patterns = HOLDS[name].split()
    for pattern in patterns:
        if not fnmatch.filter(held, pattern):
            fail(f"{name} has no {pattern}")
    more = [path for path in held if not any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)]
    if more:
        fail(f"{name} holds, and should not: {more}")


def check_control(packages, version):
    for name, package in packages.items():
        if run("dpkg-deb", "--field", package, "Version").strip() != version.replace("-", "~"):
            fail(f"{name} {version} has the version {run('dpkg-deb', '--field', package, 'Version')}")
    depends = run("dpkg-deb", "--field", packages["hearth"], "Depends")
    for needed in ("libc6 (>=", "libsqlite3-0 (>=", "libssl3 (>=", "systemd |", "tzdata"):
        if needed not in depends:
            fail(f"hearth does not depend on {needed}: {depends}")


def check_with_lintian(*packages):
    """lintian reads each object of each archive: half a minute for libhearth-dev."""
    if shutil.which("lintian") is None:
        if os.environ.get("CI") == "true":
            fail("lintian is missing: packaging/install-dependencies installs it")
        print("lintian did not look at the packages: packaging/install-dependencies installs it")
        return
    root = ["--allow-root"] if os.geteuid() == 0 else []
    print(run("lintian", *root, "--fail-on", "error", "--tag-display-limit", "0", *packages), end="")


def check_help(root):
    """The manual page has each command, and bash completes them and their options."""
    hearth = root / "usr/bin/hearth"
    listed = re.findall(r"^  ([a-z-]+) ", run(hearth, "--help").split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE)
    page = run("zcat", root / "usr/share/man/man1/hearth.1.gz")
    missing = [command for command in listed if f"\n.B {command}\n" not in page]
    if missing or len(listed) < 10:
        fail(f"hearth(1) lacks {missing} of {listed}")
    for option in (".SS hearth fibers cancel", "--note TEXT", "--trace ID"):
        if option not in page.replace("\\-", "-"):
            fail(f"hearth(1) lacks `{option}`")
    for typed, wanted in (("quar", "quarantine"), ("quarantine rel", "release"), ("serve --check", "--check-config")):
        words = f"hearth {typed}".split()
        script = f"""source "$1"; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _hearth "$2"; echo "${{COMPREPLY[*]}}" """
        said = run("bash", "-c", script, "-", root / "usr/share/bash-completion/completions/hearth", hearth).strip()
        if said != wanted:
            fail(f"bash completes `{typed}` with `{said}`")


def build_project(prefix, place, compilers):
    place.mkdir()
    for name, text in PROJECT.items():
        (place / name).write_text(text)
    run("cmake", "-S", place, "-B", place / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DHEARTH_PRECOMPILE=OFF",
        f"-DCMAKE_C_COMPILER={compilers[0]}", f"-DCMAKE_CXX_COMPILER={compilers[1]}")
    if f"Hearth_DIR:PATH={prefix}/lib/cmake/Hearth\n" not in (place / "build/CMakeCache.txt").read_text():
        fail("the package that was unpacked was not taken")
    run("cmake", "--build", place / "build")
    run(place / "build/tiny_test")
    return place / "build/plugins"


def check_nightly(root, data, place):
    """The commands of the nightly unit, as systemd runs them, beside the server of this data."""
    unit = (root / "lib/systemd/system/hearth-backup.service").read_text()
    backups = place / "backups"
    kept, old = backups / "20260101T000000Z", backups / "20250101T000000Z"
    for each in (kept, old):
        each.mkdir(parents=True)
    os.utime(old, (time.time() - 20 * 86400,) * 2)
    for line in re.findall("^Exec[A-Za-z]*=(.*)$", unit, re.MULTILINE):
        for written, here in (("--config /etc/hearth/hearth.yaml", f"--data {data}"), ("/var/backups/hearth", backups),
                              ("/usr/bin/hearth", root / "usr/bin/hearth")):
            line = line.replace(written, str(here))
        run(*shlex.split(line))
        if " restore " in line and not list((backups / ".drill").rglob("*.db")):
            fail("the nightly drill has restored nothing")
    left = {path.name for path in backups.iterdir()} - {kept.name}
    if old.name in left or ".drill" in left or len(left) != 1:
        fail(f"the nightly unit leaves {left}")


def check_server(root, plugins, scratch):
    with serving(root / "usr/bin/hearth", scratch, "--config", root / "etc/hearth/hearth.yaml", "--data", scratch / "data",
                 "--plugins", root / "usr/lib/hearth/plugins", "--plugins", plugins) as (address, _):
        if increment(address) != {"count": 1}:
            fail("the unpacked counter does not count")
        with urllib.request.urlopen(f"http://{address}/agents/tiny/first", timeout=30) as answer:
            if json.load(answer) != {"tiny": True}:
                fail("the library that was built against libhearth-dev does not answer")
        check_nightly(root, scratch / "data", scratch)


def main(build, *compilers):
    with tempfile.TemporaryDirectory(prefix="hearth-packages-") as place:
        scratch = pathlib.Path(place)
        version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", pathlib.Path(build, "CMakeCache.txt").read_text(), re.M)[1] + "-rc1"
        packages = pack(build, version, scratch)
        check_control(packages, version)
        for name, package in packages.items():
            check_contents(name, package)
            run("dpkg-deb", "--extract", package, scratch / name)
        check_with_lintian(packages["hearth"])
        check_help(scratch / "hearth")
        plugins = build_project(scratch / "libhearth-dev/usr", scratch / "project", compilers)
        check_server(scratch / "hearth", plugins, scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
