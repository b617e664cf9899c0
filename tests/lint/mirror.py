#!/usr/bin/env python3
"""Fails when a source has no test beside it in the mirror tree, or a file is too long to be read in one go."""
import pathlib
import sys

# Sources without a test file of their name, and where they are tested instead.
TESTED_ELSEWHERE = {
    "app/check_command": "tests/process/check_test.cpp",
    "app/admin_command": "tests/process/admin_test.cpp",
    "app/admin_options": "tests/app/command_line_test.cpp",
    "app/data_option": "tests/process/repair_test.cpp",
    "app/main": "tests/process",
    "app/plugin_reloader": "tests/process/reload_test.cpp",
    "app/plugin_reloader_trials": "tests/process/rollback_test.cpp",
    "app/containment": "tests/process/containment_test.cpp",
    "app/quarantine_command": "tests/process/containment_test.cpp",
    "app/repair_command": "tests/process/repair_test.cpp",
    "app/serve": "tests/process",
    "app/supervisor": "tests/process/supervised_test.cpp",
    "app/stop_signals": "tests/process/start_stop_test.cpp",
    "app/version": "tests/app/command_line_test.cpp",
    "net/acceptor": "tests/net/http_server_test.cpp",
    "config/diagnostic": "tests/config/parse_test.cpp",
    "config/mapping_reader": "tests/config/server_file_test.cpp",
    "loader/abi_class": "tests/loader/plugin_generation_test.cpp",
    "loader/abi_ext_connections": "tests/loader/abi_clients_test.cpp",
    "loader/abi_ext_http": "tests/loader/abi_clients_test.cpp",
    "loader/abi_ext_small": "tests/loader/abi_host_test.cpp",
    "loader/abi_ext_sql": "tests/loader/abi_sql_test.cpp",
    "loader/abi_extensions": "tests/loader/abi_host_test.cpp",
    "loader/abi_status": "tests/loader/abi_host_test.cpp",
    "runtime/repair": "tests/process/repair_test.cpp",
    "loader/check_agent": "tests/loader/check_host_test.cpp",
    "loader/check_cases": "tests/loader/check_test.cpp",
    "loader/check_cases_agents": "tests/loader/check_zoo_test.cpp",
    "loader/check_cases_events": "tests/loader/check_zoo_test.cpp",
    "loader/check_cases_host": "tests/loader/check_zoo_test.cpp",
    "loader/check_cases_load": "tests/loader/check_zoo_test.cpp",
    "loader/check_cases_state": "tests/loader/check_zoo_test.cpp",
    "loader/check_subject": "tests/loader/check_zoo_test.cpp",
    "loader/check_tables": "tests/loader/check_host_test.cpp",
    "loader/check_voice": "tests/loader/check_zoo_test.cpp",
    "loader/loader_thread": "tests/loader/plugin_loader_test.cpp",
    "loader/plugin_entry": "tests/loader/plugin_generation_test.cpp",
    "loader/plugin_library": "tests/loader/plugin_generation_test.cpp",
    "loader/plugin_loader_trials": "tests/process/rollback_test.cpp",
    "loader/probe_child": "tests/loader/probe_test.cpp",
    "net/boost_impl": "tests/net",
    "net/http_answer": "tests/net/http_session_test.cpp",
    "net/refused_connection": "tests/net/http_server_test.cpp",
    "net/tcp_stream": "tests/net/byte_stream_test.cpp",
    "runtime/agent_slot_exit": "tests/runtime/agent_slot_test.cpp",
    "runtime/agent_slot_queue": "tests/runtime/agent_slot_test.cpp",
    "runtime/connection": "tests/runtime/shard_test.cpp",
    "runtime/durable_work_recovery": "tests/runtime/live_agent_managed_test.cpp",
    "runtime/live_agent_host": "tests/runtime/live_agent_test.cpp",
    "runtime/live_agent_interrupted": "tests/runtime/agent_slot_interrupted_test.cpp",
    "runtime/live_agent_effects": "tests/runtime/live_agent_test.cpp",
    "runtime/live_agent_operations": "tests/runtime/live_agent_test.cpp",
    "runtime/types": "tests/runtime/agent_slot_test.cpp",
    "storage/plugin_sql_values": "tests/storage/plugin_sql_test.cpp",
    "storage/single_owner_vfs": "tests/storage/agent_database_memory_test.cpp",
}

MAX_LINES = {"host": 600, "plugin-api": 600, "plugins": 600, "tests": 800}
SUFFIXES = {".cpp", ".hpp", ".ipp", ".c", ".h", ".mjs", ".py"}
SKIPPED = {"node_modules", "__pycache__"}


def check_mirror(root: pathlib.Path) -> list[str]:
    problems = []
    untested = set()
    for path in sorted((root / "host").glob("*/*.cpp")):
        name = f"{path.parent.name}/{path.stem}"
        if not (root / "tests" / path.parent.name / f"{path.stem}_test.cpp").exists():
            untested.add(name)
            if name not in TESTED_ELSEWHERE:
                problems.append(f"host/{name}.cpp: no tests/{name}_test.cpp, and no entry in tests/lint/mirror.py that says where it is tested")
    for name, where in TESTED_ELSEWHERE.items():
        if name not in untested:
            problems.append(f"tests/lint/mirror.py: the entry for {name} is not needed any more")
        elif not (root / where).exists():
            problems.append(f"tests/lint/mirror.py: {where}, where {name} should be tested, does not exist")
    return problems


def check_length(root: pathlib.Path) -> list[str]:
    problems = []
    for folder, limit in MAX_LINES.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or SKIPPED & set(path.parts) or not path.is_file():
                continue
            lines = path.read_text().count("\n")
            if lines > limit:
                problems.append(f"{path.relative_to(root)}: {lines} lines, at most {limit}: split it by idea")
    return problems


if __name__ == "__main__":
    base = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = check_mirror(base) + check_length(base)
    print("\n".join(found) or "mirror: ok")
    sys.exit(bool(found))
