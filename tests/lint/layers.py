#!/usr/bin/env python3
"""Fails when a file includes something its layer may not know, or hands out pointers to members.
The tables below are the architecture."""
import pathlib
import re
import sys

# host/: layer -> layers it may include (besides itself). A folder in a folder is a layer by its
# path.
PLUGINS = ["base", "telemetry", "json", "config", "storage", "durable", "extensions", "runtime", "protocol", "diagnosis"]
MAY_INCLUDE = {
    "base": [],
    "telemetry": ["base"],
    "json": ["base"],
    "auth": ["base", "json"],
    "config": ["base", "telemetry", "json", "storage", "durable", "extensions", "runtime", "net"],
    "storage": ["base"],
    "durable": ["base", "json", "storage"],
    "extensions": ["base", "json", "storage", "durable"],
    "runtime": ["base", "telemetry", "json", "storage", "durable", "extensions"],
    "testhost": ["base", "telemetry", "json", "storage", "durable", "extensions", "runtime"],
    "protocol": ["base", "json"],
    "diagnosis": ["base", "telemetry"],
    "plugins/admission": ["base", "json", "extensions", "diagnosis"],
    "plugins/generation": ["base", "telemetry", "json", "extensions", "runtime", "diagnosis", "plugins/admission"],
    "plugins/versions": ["base", "telemetry", "json", "config", "extensions", "runtime", "protocol", "diagnosis",
                         "plugins/admission", "plugins/generation"],
    "plugins/check": ["base", "telemetry", "json", "storage", "extensions", "plugins/admission"],
    "net": ["base", "telemetry"],
    "api": ["base", "telemetry", "json", "auth", "storage", "protocol", "net", "runtime"],
    "server": [*PLUGINS, "plugins/admission", "plugins/generation", "plugins/versions", "auth", "net", "api"],
    "cli": [*PLUGINS, "plugins/admission", "plugins/generation", "plugins/versions", "plugins/check", "auth", "net", "api",
            "server"],
}

# The parts of plugin-api that the host may see: the C interface, and nothing of the SDK.
ABI_HEADERS = r"hearth/(abi|ext/\w+)\.h"
ABI_LAYERS = ["extensions", "testhost", "plugins/admission", "plugins/generation", "plugins/versions", "plugins/check", "server", "cli"]

# Rules that host and SDK share, and the layers that may know them.
SHARED_RULES = {"hearth/json_rules.h": ["json"], "hearth/event_rules.hpp": ["extensions"], "hearth/testing/mock.hpp": ["testhost"]}

# third-party header -> (layers that may use it, may it appear in a header?)
THIRD_PARTY = [
    (r"sqlite3\.h", ["storage"], False),
    (r"boost/beast/.*", ["net"], False),
    (r"boost/asio/(impl|ssl)/.*", ["net"], False),
    (r"boost/asio/.*", ["net", "runtime"], True),
    (r"boost/dll/.*|dlfcn\.h|elf\.h", ["plugins/admission", "plugins/generation", "plugins/check", "diagnosis"], False),
    (r"elfutils/.*|gelf\.h", ["diagnosis"], False),
    (r"openssl/.*", ["net", "auth"], False),
    (r"cjose/.*", ["auth"], False),
    (r"curl/.*", ["net", "cli"], False),
    (r"ares\.h|zlib\.h", ["net"], False),
    (r"yaml-cpp/.*", ["config"], False),
    (r"nlohmann/json\.hpp", ["json"], True),
    (r"spdlog/.*", ["telemetry"], False),
    (r"prometheus/.*", ["telemetry"], False),
    (r"date/.*", ["durable"], False),
    (r"CLI/.*", ["cli"], False),
]

# Layers whose classes pass no pointer to a member to another class: that class could reach private
# members.
NO_MEMBER_POINTERS = ["runtime"]

# umbrella headers that no source may use
BANNED = [r"boost/asio\.hpp", r"boost/beast\.hpp", r"iostream", r"regex"]

# The type of such a pointer (`void (Slot::*what)()`), or its value (`&Slot::go_on`).
MEMBER_POINTER = re.compile(r"\w::\s*\*|&(?:\w+::)*[A-Z]\w*::[a-z_]")
# What headers of the SDK name for its own code alone.
SDK_INTERNALS = re.compile(r"\bdetail\s*::|\bactivation\(\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def includes(path: pathlib.Path) -> list[tuple[str, str]]:
    return INCLUDE.findall(path.read_text())


def banned(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in BANNED)


def check_member_pointers(root: pathlib.Path) -> list[str]:
    problems = []
    for layer in NO_MEMBER_POINTERS:
        for path in sorted((root / "host" / layer).glob("*.[chi]pp")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if MEMBER_POINTER.search(line.partition("//")[0]):
                    problems.append(f"{path.relative_to(root)}:{number}: a pointer to a member: pass a lambda or an enum")
    return problems


def check_third_party(layer: str, is_header: bool, name: str) -> list[str]:
    for pattern, layers, in_headers in THIRD_PARTY:
        if not re.fullmatch(pattern, name):
            continue
        if layer not in layers:
            return [f"only {', '.join(layers)} may use it"]
        if is_header and not in_headers:
            return ["only .cpp files may include it"]
        return []
    return []


def check_host(root: pathlib.Path) -> list[str]:
    problems = []
    for path in sorted((root / "host").rglob("*.[chi]pp")):
        layer = str(path.parent.relative_to(root / "host"))
        if layer not in MAY_INCLUDE:
            problems.append(f"{path}: unknown layer '{layer}'")
            continue
        for quote, name in includes(path):
            where = f"{path.relative_to(root)}: includes {name}"
            if quote == '"':
                target = str(pathlib.PurePath(name).parent)
                if target != layer and target not in MAY_INCLUDE[layer]:
                    problems.append(f"{where}: layer '{layer}' may not know '{target}'")
                continue
            if banned(name):
                problems.append(f"{where}: banned header")
            is_shared_rule = layer in SHARED_RULES.get(name, [])
            if name.startswith("hearth/") and not is_shared_rule and (layer not in ABI_LAYERS or not re.fullmatch(ABI_HEADERS, name)):
                problems.append(f"{where}: the host knows the plugin ABI in {', '.join(ABI_LAYERS)}, and never the SDK")
            # boost_impl.cpp is where the non-template code of Asio and Beast is compiled.
            if path.name != "boost_impl.cpp":
                problems += [f"{where}: {why}" for why in check_third_party(layer, path.suffix == ".hpp", name)]
    return problems


def check_plugin_api(root: pathlib.Path) -> list[str]:
    """What authors include: C with nothing but two headers, and C++ that stands on the standard
    library and JSON."""
    problems = []
    for path in sorted((root / "plugin-api" / "include").rglob("*.h*")):
        for quote, name in includes(path):
            where = f"{path.relative_to(root)}: includes {name}"
            if path.suffix == ".h":
                if name not in ("stddef.h", "stdint.h") and not re.fullmatch(ABI_HEADERS + r"|(\.\./)?abi\.h", name):
                    problems.append(f"{where}: the C interface includes stddef.h, stdint.h and itself")
            elif quote == '"' or banned(name) or re.match(r"boost/|spdlog/|fmt/", name):
                problems.append(f"{where}: the SDK is <hearth/...>, the standard library and nlohmann/json")
            elif name == "sqlite3.h":
                problems.append(f"{where}: SQLite is the host's")
    return problems


def check_chat(root: pathlib.Path) -> list[str]:
    """Hearth::chat stands on what authors may include and name of the SDK, and the SDK does not
    know it."""
    problems = []
    folder = root / "plugin-api" / "chat"
    for path in sorted(folder.rglob("*.[chi]pp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if SDK_INTERNALS.search(line.partition("//")[0]):
                problems.append(f"{path.relative_to(root)}:{number}: the SDK's own: give authors a name for it, or do without")
        for quote, name in includes(path):
            where = f"{path.relative_to(root)}: includes {name}"
            if quote == '"':
                if path.parent != folder / "src" or not (path.parent / name).exists():
                    problems.append(f"{where}: only a source of the chat, and only files beside it")
            elif re.match(r"hearth/(detail|testing|ext)/", name):
                problems.append(f"{where}: the chat has of the SDK what authors have")
            elif not name.startswith("hearth/") and not re.fullmatch(r"[a-z_]+", name) or banned(name):
                problems.append(f"{where}: the chat is <hearth/...> and the standard library")
    for path in sorted([*(root / "plugin-api/include").rglob("*.h*"), *(root / "plugin-api/src").glob("*.cpp")]):
        if any(name.startswith("hearth/chat/") for _, name in includes(path)):
            problems.append(f"{path.relative_to(root)}: the SDK does not know the chat")
    return problems


def check_plugins(root: pathlib.Path) -> list[str]:
    """A plugin knows plugin-api, and nothing of the host: it is built elsewhere by people who do
    not have it."""
    problems = []
    for folder in sorted(path for path in (root / "plugins").iterdir() if path.is_dir()):
        for path in sorted(folder.rglob("*.[ch]*")):
            for quote, name in includes(path):
                is_own = quote == '"' and (path.parent / name).resolve().is_relative_to(folder.resolve())
                if quote == '"' and not (is_own and (path.parent / name).exists()):
                    problems.append(f"{path.relative_to(root)}: includes {name}: a plugin has <hearth/...> and its own files")
    return problems


def check(root: pathlib.Path) -> list[str]:
    return check_host(root) + check_member_pointers(root) + check_plugin_api(root) + check_chat(root) + check_plugins(root)


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
