"""The alert rules that ship, with promtool: a row of figures raises the alerts that it names.

promtool is in Debian's package `prometheus`, which would also start a server. So it is taken out of
the package's file, and kept in the build directory."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

source, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
rules = source / "packaging" / "hearth-alerts.yml"
text = rules.read_text(encoding="utf-8")
named = set(re.findall(r"alert: (\w+)", text))

INSTANCE = 'instance="host:8787",job="hearth"'
DAY = 86400

# Samples of a minute each, in promtool's notation, for 30 minutes; what is not named is healthy.
HEALTHY = {
    "up{%s}": "1x30",
    "hearth_uptime_seconds{%s}": "100+60x30",
    "hearth_storage_full{%s}": "0x30",
    "hearth_storage_free_bytes{%s}": "500x30",
    "hearth_storage_size_bytes{%s}": "1000x30",
    'hearth_storage_failures_total{%s,class="Chat"}': "0x30",
    "hearth_sync_failures_total{%s}": "0x30",
    "hearth_operations_unknown{%s}": "0x30",
    'hearth_durable_events_total{%s,class="Chat",event="queue:dead"}': "4x30",
    "hearth_agents_stuck{%s}": "0x30",
    "hearth_classes_quarantined{%s}": "0x30",
    "hearth_reloads_taken_back_total{%s}": "1x30",
    "hearth_reloads_refused_total{%s}": "1x30",
    'hearth_agent_failed_starts_total{%s,class="Chat"}': "2x30",
    'hearth_agent_events_total{%s,class="Chat",event="chat:recovery:exhausted"}': "3x30",
    "hearth_log_lines_dropped_total{%s}": "0x30",
    "hearth_log_lost_bytes_total{%s}": "0x30",
    "hearth_audit_lost_total{%s}": "0x30",
    "hearth_tls_certificate_expires_seconds{%s}": f"{60 * DAY}x30",
}
DEAD = 'hearth_durable_events_total{%s,class="Chat",event="alarm:dead"}'
# What changes, and the alerts that fire after 30 minutes.
CASES = [
    ({}, []),
    ({"up{%s}": "1x27 0x3"}, ["HearthDown"]),
    ({"hearth_uptime_seconds{%s}": "100+60x20 10 70 10 70 10 70 130 190 250"}, ["HearthRestarts"]),
    ({"hearth_storage_full{%s}": "0x29 1"}, ["HearthStorageFull"]),
    ({"hearth_storage_free_bytes{%s}": "99x30"}, ["HearthStorageNearlyFull"]),
    ({'hearth_storage_failures_total{%s,class="Chat"}': "0x26 1x4"}, ["HearthStorageFails"]),
    ({'hearth_storage_failures_total{%s,class="New"}': "_x26 1x4"}, ["HearthStorageFails"]),
    ({"hearth_sync_failures_total{%s}": "0x26 2x4"}, ["HearthStorageFails"]),
    ({"hearth_operations_unknown{%s}": "0x10 1x20"}, ["HearthOperationsUnknown"]),
    ({'hearth_durable_events_total{%s,class="Chat",event="queue:dead"}': "4x20 5x10"}, ["HearthWorkDead"]),
    # The first one ever: no sample before it is 0.
    ({DEAD: "_x20 1x10"}, ["HearthWorkDead"]),
    ({DEAD: "_x5 1x25"}, []),  # an old one
    ({"hearth_agents_stuck{%s}": "0x10 3x20"}, ["HearthAgentsStuck"]),
    ({"hearth_agents_stuck{%s}": "0x25 3x5"}, []),
    ({"hearth_classes_quarantined{%s}": "0x29 1"}, ["HearthClassQuarantined"]),
    ({"hearth_reloads_taken_back_total{%s}": "1x25 2x5"}, ["HearthVersionTakenBack"]),
    ({"hearth_reloads_refused_total{%s}": "1x25 2x5"}, ["HearthVersionTakenBack"]),
    ({'hearth_agent_failed_starts_total{%s,class="Chat"}': "2x20 4+2x9"}, ["HearthStartsFail"]),
    ({'hearth_agent_events_total{%s,class="Chat",event="chat:recovery:exhausted"}': "3x20 4x10"}, ["HearthChatsExhausted"]),
    ({"hearth_log_lines_dropped_total{%s}": "0x25 7x5"}, ["HearthLogLost"]),
    ({"hearth_audit_lost_total{%s}": "0x25 7x5"}, ["HearthLogLost"]),
    ({"hearth_tls_certificate_expires_seconds{%s}": f"{13 * DAY}x30"}, ["HearthCertificateExpires"]),
]


def promtool() -> pathlib.Path | None:  # none: Debian's packages cannot be had here
    installed = shutil.which("promtool")
    kept = work / "promtool"
    if installed or kept.exists():
        return pathlib.Path(installed or kept)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    if subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=work).returncode != 0:
        return None
    package = next(work.glob("prometheus_*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, "files"], cwd=work, check=True)
    (work / "files" / "usr" / "bin" / "promtool").rename(kept)
    return kept


# The labels of an alert, besides those of the rule: those that the figure has, or is summed by.
def labels_of(alert: str, figure: str) -> dict:
    had = dict(re.findall(r'(\w+)="([^"]*)"', figure % INSTANCE))
    by = re.search(rf"alert: {alert}\n.*?(?=alert:|\Z)", text, re.DOTALL).group()
    kept = re.search(r"sum by \(([^)]*)\)", by)
    severity = re.search(r"severity: (\w+)", by).group(1)
    names = kept.group(1).split(", ") if kept else had
    return {name: had[name] for name in names} | {"severity": severity}


def case_text(changed: dict, alerts: list) -> str:
    lines = ["- interval: 1m", "  input_series:"]
    for name, values in (HEALTHY | changed).items():
        lines += [f"  - series: '{name % INSTANCE}'", f"    values: '{values}'"]
    lines.append("  alert_rule_test:")
    for alert in named:
        lines += ["  - eval_time: 30m", f"    alertname: {alert}"]
        if alert in alerts:
            lines.append("    exp_alerts:")
            lines.append(f"    - exp_labels: {json.dumps(labels_of(alert, next(iter(changed))))}")
    return "\n".join(lines)


def main() -> None:
    tried = {alert for _, alerts in CASES for alert in alerts}
    if named != tried:
        sys.exit(f"alerts without a row, or rows without an alert: {sorted(named ^ tried)}")
    shown = {path: path.read_text(encoding="utf-8") for path in (source / "host").rglob("*.cpp")}
    for metric in sorted(set(re.findall(r"hearth_\w+", text))):
        if not any(f'"{metric}"' in code for code in shown.values()):
            sys.exit(f"no server has the figure {metric}")
    tool = promtool()
    if tool is None:
        return print("only the names were looked at: Debian's package `prometheus` cannot be had here")
    work.mkdir(parents=True, exist_ok=True)
    # promtool compares the texts too: they are left out.
    (work / "rules.yml").write_text(re.sub(r" +annotations:\n( +(summary|action): .*\n)*", "", text), encoding="utf-8")
    table = work / "alerts_test.yml"
    cases = "\n".join(case_text(*case) for case in CASES)
    table.write_text(f"rule_files: ['rules.yml']\nevaluation_interval: 1m\ntests:\n{cases}\n", encoding="utf-8")
    subprocess.run([tool, "check", "rules", rules], check=True)
    subprocess.run([tool, "test", "rules", table], check=True)
    print(f"{len(CASES)} rows, {len(named)} alerts")


main()
