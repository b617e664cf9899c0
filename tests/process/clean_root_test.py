#!/usr/bin/env python3
"""The package hearth in a Debian 12 that has nothing else, without systemd: it is installed,
upgraded to a newer build, removed and purged; and packaging/Containerfile, its steps done by other
tools. lintian finds no error in both packages. As root, with the network for Debian's packages.

    clean_root_test.py BUILD_DIRECTORY
"""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from installed_test import increment
from packages_test import check_with_lintian, pack

MOST_SECONDS = 20  # until the first answer
PATIENCE_SECONDS = 300
SOURCES = pathlib.Path(__file__).resolve().parents[2]
OLD, NEW = "1.0.0-rc1", "1.0.0"
SERVE = ("/usr/bin/hearth", "serve", "--config", "/etc/hearth/hearth.yaml")


def fail(text):
    sys.exit(f"clean_root_test: {text}")


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], timeout=PATIENCE_SECONDS, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def apt(root, *arguments):
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return run("chroot", root, "apt-get", "-q", "-y", "--no-install-recommends", *arguments, env=environment)


@contextlib.contextmanager
def serving(root, command):
    """A server that is the first process of a root: its address and its process id. It must end
    with status 0."""
    user = next(line.split(":") for line in (root / "etc/passwd").read_text().splitlines() if line.startswith("hearth:"))
    with open(root / "log", "w+") as log:
        outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", f"--root={root}", "--mount-proc",
                                  "--wd=/var/lib/hearth", f"--setgid={user[3]}", f"--setuid={user[2]}", *command],
                                 stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            ready = outer.stdout.readline()
            if "listening on " not in ready:
                fail(f"the server did not start:\n{(root / 'log').read_text()}")
            inner = int(run("pgrep", "--parent", outer.pid))
            yield "127.0.0.1:8787", inner
            os.kill(inner, signal.SIGTERM)
            if outer.wait(PATIENCE_SECONDS) != 0:
                fail(f"the server ended with status {outer.returncode}:\n{(root / 'log').read_text()}")
        finally:
            subprocess.run(["pkill", "-KILL", "--parent", str(outer.pid)])
            outer.wait()
            outer.stdout.close()


@contextlib.contextmanager
def mount_point(directory):
    run("mount", "--bind", directory, directory)
    yield
    run("umount", directory)


def count_to(root, number):
    with serving(root, SERVE) as (address, _):
        if increment(address) != {"count": number}:
            fail(f"the counter is not at {number}")


def check_package(root):
    debs = {version: f"/debs/hearth_{version.replace('-', '~')}_amd64.deb" for version in (OLD, NEW)}
    run("mount", "-t", "proc", "proc", root / "proc")
    begin = time.monotonic()
    apt(root, "install", debs[OLD])
    with serving(root, SERVE) as (address, _):
        first = increment(address)
        seconds = time.monotonic() - begin
        if first != {"count": 1}:
            fail(f"the first answer is {first}")
    print(f"from cached packages to the first answer: {seconds:.1f} s (at most {MOST_SECONDS}), load {os.getloadavg()[0]:.1f}")
    if seconds > MOST_SECONDS:
        fail("that is too long")

    settings, home = root / "etc/hearth/hearth.yaml", root / "var/lib/hearth"
    mine = "# a line of the administrator\n"
    settings.write_text(settings.read_text() + mine)
    (home / "other").write_text("not of the package\n")
    if home.stat().st_mode & 0o777 != 0o700:
        fail("others than the server can look into /var/lib/hearth")
    apt(root, "install", debs[NEW])
    if run("chroot", root, "dpkg-query", "-W", "-f", "${Version}", "hearth") != NEW:
        fail("the upgrade did not install the new version")
    if not run("chroot", root, "hearth", "--version").startswith(f"hearth {NEW}\n"):
        fail("the server that was installed is not of the new version")
    count_to(root, 2)

    apt(root, "remove", "hearth")
    if (root / "usr/bin/hearth").exists() or not (home / "data/host.db").exists() or mine not in settings.read_text():
        fail("a removal takes the programs, and keeps data and settings")
    apt(root, "install", debs[NEW])
    count_to(root, 3)
    class_file = root / "etc/hearth/classes/counter.yaml"
    class_file.write_text("# of the administrator\n")
    apt(root, "purge", "hearth")
    if settings.exists() or not class_file.exists() or [path.name for path in home.iterdir()] != ["other"]:
        fail(f"a purge takes settings and data, and nothing else: {list(home.iterdir())}")
    class_file.unlink()
    (home / "other").unlink()
    for mounted in (home / "data", home):
        apt(root, "install", debs[NEW])
        (home / "data/shard").mkdir(parents=True)
        with mount_point(mounted):
            apt(root, "purge", "hearth")
            if not mounted.exists() or list(mounted.iterdir()):
                fail(f"a purge empties the mount point {mounted}")
    apt(root, "install", debs[NEW])
    apt(root, "purge", "hearth")
    left = [path for path in run("find", root, "-xdev", "-name", "*hearth*").splitlines() if not path.startswith(f"{root}/debs/")]
    if left:
        fail(f"a purge leaves {left}")


def has_child(process, command):
    return any(line.split()[:2] == [str(process), command] for line in run("ps", "-e", "-o", "ppid=,comm=").splitlines())


def check_container(root):
    """What the Containerfile says, in the root that packaging/container-root has made."""
    text = (SOURCES / "packaging/Containerfile").read_text()
    words = dict(re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE))
    if (words["FROM"], words["ADD"], words["USER"], words["WORKDIR"]) != ("scratch", "hearth-root.tar /", "hearth", "/var/lib/hearth"):
        fail("the Containerfile does other steps than this test")
    healthy = json.loads(words["HEALTHCHECK"].split(" CMD ")[1])
    with serving(root, json.loads(words["ENTRYPOINT"]) + json.loads(words["CMD"])) as (address, inner):
        if increment(address) != {"count": 1}:
            fail("the server of the container does not answer")
        status = f"/proc/{inner}/status"
        if re.search(r"^NSpid:.*\t1$", pathlib.Path(status).read_text(), re.MULTILINE) is None:
            fail("the server is not the first process")
        if pathlib.Path(status).stat().st_uid == 0:
            fail("the server runs as root")
        run("chroot", "--userspec=hearth", root, *healthy)
        # A process whose parent has gone is the first process's, which reaps it.
        run("nsenter", "--target", inner, "--pid", "sh", "-c", "(sleep 3 >/dev/null 2>&1 &)")
        if not has_child(inner, "sleep"):
            fail("the orphan has another parent than the first process")
        end = time.monotonic() + 20
        while has_child(inner, "sleep"):
            if time.monotonic() > end:
                fail("the first process does not reap an orphan")
            time.sleep(0.1)
    if subprocess.run(["chroot", "--userspec=hearth", root, *healthy], stderr=subprocess.DEVNULL).returncode == 0:
        fail("the health check is content without a server")


@contextlib.contextmanager
def newer(build):
    """While it lasts, what is built there is of the newer version. Builds as the owner of it."""
    owner = pathlib.Path(build).stat()
    more = {"user": owner.st_uid, "group": owner.st_gid, "env": {**os.environ, "HOME": pwd.getpwuid(owner.st_uid).pw_dir}}

    def make(version):
        run("cmake", version, build, **more)
        run("cmake", "--build", build, "--target", "shipped", **more)

    try:
        make(f"-DHEARTH_VERSION={NEW}")
        yield
    finally:
        make("-UHEARTH_VERSION")


def prepare(build, place):
    """The two roots, which need the network."""
    debs = place / "clean/debs"
    run("mmdebstrap", "--quiet", "--variant=apt", "--include=systemd-standalone-sysusers,systemd-standalone-tmpfiles", "bookworm",
        place / "clean")
    debs.mkdir()
    for version, built in ((OLD, contextlib.nullcontext()), (NEW, newer(build))):
        (place / version).mkdir()
        with built:
            packages = pack(build, version, place / version)
        shutil.copy(packages["hearth"], debs)
    check_with_lintian(*packages.values())
    shutil.copy("/etc/resolv.conf", place / "clean/etc/resolv.conf")
    apt(place / "clean", "update")
    apt(place / "clean", "--download-only", "install", f"/debs/hearth_{NEW}_amd64.deb")
    run(SOURCES / "packaging/container-root", debs / f"hearth_{NEW}_amd64.deb", place / "hearth-root.tar")
    (place / "container").mkdir()
    run("tar", "--extract", "--file", place / "hearth-root.tar", "--directory", place / "container")
    print(f"the root of the container: {(place / 'hearth-root.tar').stat().st_size / 1e6:.0f} MB")


def main(build, inside=None):
    if inside:  # without a network, so that all comes from what is cached, and with all ports free
        run("ip", "link", "set", "lo", "up")
        check_package(pathlib.Path(inside) / "clean")
        check_container(pathlib.Path(inside) / "container")
        return
    with tempfile.TemporaryDirectory(prefix="hearth-clean-root-") as place:
        os.chmod(place, 0o755)
        prepare(build, pathlib.Path(place))
        sys.stdout.flush()
        sys.exit(subprocess.run(["unshare", "--mount", "--net", sys.executable, __file__, build, place]).returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
