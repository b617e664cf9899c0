#!/usr/bin/env python3
"""Fails when a source has no test beside it in the mirror tree, when a test of the SDK is not
built, when a promise of recovery or of the ledger has no test of its name, or when a file is too
long to be read in one go. `--self-test` checks the lint itself.
"""
import pathlib
import re
import sys
import tempfile

# Sources without a test file of their name, and where they are tested instead.
TESTED_ELSEWHERE = {
    "api/object_lookup": "tests/api/who_may_connect_test.cpp",
    "api/request_body": "tests/process/request_body_test.cpp",
    "chat/answer": "tests/chat/provider_test.cpp",
    "chat/anthropic_messages": "tests/chat/provider_test.cpp",
    "chat/chat_completions": "tests/chat/provider_test.cpp",
    "chat/openai_responses": "tests/chat/provider_test.cpp",
    "chat/parts": "tests/chat/message_test.cpp",
    "chat/running_turn": "tests/chat/run_turn_test.cpp",
    "chat/transcript_list": "tests/chat/transcript_test.cpp",
    "cli/admin_command": "tests/process/admin_test.cpp",
    "cli/admin_options": "tests/cli/command_line_test.cpp",
    "cli/backup_command": "tests/process/backup_test.cpp",
    "cli/check_command": "tests/process/check_test.cpp",
    "cli/command_options": "tests/cli/command_line_test.cpp",
    "cli/commands": "tests/process/repair_test.cpp",
    "cli/configuration": "tests/cli/config_command_test.cpp",
    "cli/dev_command": "tests/process/dev_test.cpp",
    "cli/main": "tests/process",
    "cli/quarantine_command": "tests/process/containment_test.cpp",
    "cli/repair_command": "tests/process/repair_test.cpp",
    "cli/restore_command": "tests/process/backup_test.cpp",
    "cli/serve": "tests/process",
    "cli/verify_command": "tests/process/backup_test.cpp",
    "config/diagnostic": "tests/config/parse_test.cpp",
    "config/mapping_reader": "tests/config/server_file_test.cpp",
    "config/source": "tests/config/setting_test.cpp",
    "durable/fiber_request": "tests/durable/fibers_start_test.cpp",
    "durable/fiber_table": "tests/durable/fiber_records_test.cpp",
    "durable/fiber_turns": "tests/durable/fibers_marks_test.cpp",
    "extensions/abi_status": "tests/extensions/abi_host_test.cpp",
    "extensions/agent_context": "tests/extensions/durable_calls.hpp",
    "extensions/basics": "tests/extensions/abi_host_test.cpp",
    "extensions/client": "tests/extensions/connections_test.cpp",
    "extensions/durable_events": "tests/runtime/durable_counts_test.cpp",
    "extensions/work_dispatch": "tests/extensions/durable_work_test.cpp",
    "extensions/work_kinds": "tests/extensions/durable_work_test.cpp",
    "extensions/types": "tests/extensions/connections_test.cpp",
    "api/edge_rules": "tests/api/who_may_connect_test.cpp",
    "testhost/body_upload": "tests/plugin-api/request_body_test.cpp",
    "testhost/http_replies": "tests/plugin-api/fetch_test.cpp",
    "testhost/lent_bytes": "tests/plugin-api/mock_host_test.cpp",
    "testhost/no_metrics": "tests/plugin-api/mock_host_test.cpp",
    "testhost/parts": "tests/plugin-api/mock_host_test.cpp",
    "testhost/questions": "tests/plugin-api/sql_test.cpp",
    "testhost/test_agent": "tests/plugin-api/agent_test.cpp",
    "testhost/test_class": "tests/plugin-api/mock_host_test.cpp",
    "testhost/test_host": "tests/plugin-api/mock_host_test.cpp",
    "api/openapi_schemas": "tests/api/openapi_test.cpp",
    "net/acceptor": "tests/net/http_server_test.cpp",
    "net/boost_impl": "tests/net",
    "net/message_packing": "tests/net/beast_web_socket_deflate_test.cpp",
    "net/curl_loop": "tests/net/outbound_http_test.cpp",
    "net/outbound_transfer": "tests/net/outbound_rules_test.cpp",
    "net/tcp_stream": "tests/net/byte_stream_test.cpp",
    "server/span_exporter": "tests/process/tracing_test.cpp",
    "server/agent_desk": "tests/server/admin_desk_test.cpp",
    "server/agent_sql": "tests/process/operate_test.cpp",
    "server/chats": "tests/process/chats_test.cpp",
    "server/data_desk": "tests/process/operate_test.cpp",
    "server/work_places": "tests/process/operate_test.cpp",
    "server/work_records": "tests/process/operate_test.cpp",
    "server/agent_waits": "tests/process/why_test.cpp",
    "server/backups": "tests/process/backup_test.cpp",
    "server/stuck_agents": "tests/process/why_test.cpp",
    "server/desk": "tests/server/admin_desk_test.cpp",
    "server/agent_visits": "tests/fault/operations_kill_test.cpp",
    "server/operation_pages": "tests/server/admin_desk_test.cpp",
    "server/data_loss": "tests/process/data_directory_test.cpp",
    "plugins/admission/required_check": "tests/plugins/check/check_record_test.cpp",
    "plugins/check/check_agent": "tests/plugins/check/check_host_test.cpp",
    "plugins/admission/plugin_library": "tests/plugins/generation/plugin_generation_test.cpp",
    "plugins/check/check_cases": "tests/plugins/check/check_test.cpp",
    "plugins/check/check_cases_agents": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_cases_events": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_cases_host": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_cases_load": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_cases_state": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_subject": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/check/check_voice": "tests/plugins/check/check_zoo_test.cpp",
    "plugins/generation/abi_class": "tests/plugins/generation/plugin_generation_test.cpp",
    "plugins/generation/plugin_entry": "tests/plugins/generation/plugin_generation_test.cpp",
    "plugins/generation/probe_child": "tests/plugins/admission/probe_test.cpp",
    "plugins/versions/rollouts": "tests/process/rollback_test.cpp",
    "plugins/versions/loader_thread": "tests/plugins/versions/plugin_loader_test.cpp",
    "plugins/versions/removed_classes": "tests/process/reload_test.cpp",
    "plugins/versions/version_files": "tests/plugins/versions/version_ledger_test.cpp",
    "runtime/agent_calls": "tests/runtime/live_agent_answers_test.cpp",
    "runtime/agent_clients": "tests/runtime/live_agent_clients_test.cpp",
    "runtime/agent_code": "tests/runtime/live_agent_test.cpp",
    "runtime/agent_effects": "tests/runtime/live_agent_test.cpp",
    "runtime/agent_entry": "tests/runtime/agent_slot_room_test.cpp",
    "runtime/agent_exit": "tests/runtime/agent_slot_test.cpp",
    "runtime/agent_slots": "tests/runtime/shard_test.cpp",
    "runtime/agent_turns": "tests/runtime/agent_slot_test.cpp",
    "runtime/agent_work": "tests/runtime/live_agent_work_test.cpp",
    "runtime/connection": "tests/runtime/connections_test.cpp",
    "runtime/live_context": "tests/runtime/live_agent_test.cpp",
    "runtime/repair": "tests/process/repair_test.cpp",
    "runtime/shard_services": "tests/runtime/shard_test.cpp",
    "runtime/work_delivery": "tests/runtime/live_agent_work_test.cpp",
    "server/served_certificate": "tests/process/tls_test.cpp",
    "server/containment": "tests/process/containment_test.cpp",
    "server/stop_signals": "tests/process/start_stop_test.cpp",
    "server/supervisor": "tests/process/supervised_test.cpp",
    "storage/plugin_sql_values": "tests/storage/plugin_sql_test.cpp",
    "storage/single_owner_vfs": "tests/storage/agent_database_memory_test.cpp",
}

MAX_LINES = {"host": 600, "plugin-api": 600, "plugins": 600, "tests": 800}
SUFFIXES = {".cpp", ".hpp", ".ipp", ".c", ".h", ".mjs", ".py"}
SKIPPED = {"node_modules", "__pycache__"}


def check_mirror(root: pathlib.Path) -> list[str]:
    problems = []
    untested = set()
    sources = {str(path.relative_to(root / "host").with_suffix("")): path for path in (root / "host").rglob("*.cpp")}
    sources |= {f"chat/{path.stem}": path for path in (root / "plugin-api/chat/src").glob("*.cpp")}
    for name, path in sorted(sources.items()):
        if not (root / "tests" / f"{name}_test.cpp").exists():
            untested.add(name)
            if name not in TESTED_ELSEWHERE:
                problems.append(f"{path.relative_to(root)}: no tests/{name}_test.cpp, and no entry in tests/lint/mirror.py that says where it is tested")
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


def check_listed(root: pathlib.Path) -> list[str]:
    """The tests of the SDK stand in a list, and what is not in it is never run."""
    folder = root / "tests/plugin-api"
    listed = set(re.findall(r"[^\s()]+", re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())))
    return [f"{path.relative_to(root)}: tests/plugin-api/CMakeLists.txt does not list it, so that it is never run"
            for path in sorted(folder.glob("*_test.cpp")) if path.name not in listed]


# Of recovery (R) and the ledger (I). R4, R8 and R9 are about what chats store.
PROMISES = [f"R{n}" for n in (1, 2, 3, 5, 6, 7, 10, 11, 12)] + [f"I{n}" for n in range(1, 8)]


def check_promises(root: pathlib.Path) -> list[str]:
    """tests/README.md has a row for each, which names a test that is there, and whose name has the
    promise."""
    readme = (root / "tests/README.md").read_text()
    rows = dict(re.findall(r"^\| ([RI]\d+) \|.*\| ([^|]*) \|$", readme, re.MULTILINE))
    tests = set()
    for path in (root / "tests").rglob("*_test.cpp"):
        for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(), re.MULTILINE):
            tests.update(f"{suite}.{line}" for line in name.split("_"))
    problems = []
    for promise in PROMISES:
        named = re.findall(r"`(\w+)\.((?:[RI]\d+_)+)\.\.\.`", rows.get(promise, ""))
        missing = [f"{suite}.{lines}" for suite, lines in named for line in lines.split("_")[:-1] if f"{suite}.{line}" not in tests]
        problems += [f"tests/README.md: {promise}: there is no test {each}" for each in missing]
        if not any(promise in lines.split("_") for _, lines in named):
            problems.append(f"tests/README.md: {promise} has no row with a test of its name")
    return problems


def self_test() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "tests/plugin-api"
        folder.mkdir(parents=True)
        for name in ("kv_test.cpp", "sql_test.cpp", "old_test.cpp", "fixture.hpp"):
            (folder / name).touch()
        (folder / "CMakeLists.txt").write_text("tests(all kv_test.cpp\n      plain_sql_test.cpp)  # old_test.cpp\n")
        found = [problem.split(":")[0] for problem in check_listed(pathlib.Path(scratch))]
        (folder / "kv_test.cpp").write_text("TEST_F(KvTest, I1_I2_IsKept) {\nTEST(KvTest, I3_IsGone) {\n")
        rows = [f"| {each} | kept | `KvTest.{each}_...` |\n" for each in ("I1", "I2", "I5")]
        (folder.parent / "README.md").write_text("".join(rows) + "| I3 | gone | `KvMatrix` |\n")
        promises = check_promises(pathlib.Path(scratch))
        found += [problem.split(": ", 1)[1] for problem in promises if re.search(r"\bI[1235]\b", problem)]
    if found != ["tests/plugin-api/old_test.cpp", "tests/plugin-api/sql_test.cpp", "I3 has no row with a test of its name",
                 "I5: there is no test KvTest.I5_"]:
        print(f"mirror: the self-test found {found}")
        return 1
    print("mirror: the self-test is ok")
    return 0


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    base = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = check_mirror(base) + check_listed(base) + check_promises(base) + check_length(base)
    print("\n".join(found) or "mirror: ok")
    sys.exit(bool(found))
