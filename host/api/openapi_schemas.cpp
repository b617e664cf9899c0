#include "api/openapi_schemas.hpp"

namespace hearth::api {
namespace {

constexpr std::string_view kSchemas = R"json({
"Error": {"type": "object", "required": ["error"], "properties": {
  "error": {"type": "object", "required": ["code", "message"], "properties": {
    "code": {"type": "string"}, "message": {"type": "string"}}}}},
"ObjectError": {"type": "object", "required": ["success", "error", "code", "retryable"], "properties": {
  "success": {"const": false}, "error": {"type": "string"}, "code": {"type": "string"},
  "retryable": {"type": "boolean"}}},
"Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
"Readiness": {"type": "object", "required": ["status", "storage", "classes"], "properties": {
  "status": {"const": "ready"}, "storage": {"enum": ["ok", "full"]}, "classes": {"type": "array", "items": {"type": "string"}}}},
"Anything": {},

"Call": {"type": "object", "required": ["method"], "properties": {
  "method": {"type": "string"},
  "args": {"description": "An array is positional, any other value is the one argument."}}},
"CallResult": {"type": "object", "required": ["success", "data", "result"], "properties": {
  "success": {"const": true}, "data": {}, "result": {"description": "The same as data."}}},
"NewObject": {"type": "object", "required": ["class", "object_id"], "properties": {
  "class": {"type": "string"}, "object_id": {"type": "string"}, "storage": {"type": "object"}}},
"StoragePatch": {"type": "object", "required": ["storage"], "properties": {
  "storage": {"type": "object", "description": "A JSON merge patch (RFC 7396)."}}},
"MergePatch": {"type": "object"},
"Object": {"type": "object",
  "required": ["id", "class", "object_id", "status", "sandbox_name", "created_at", "last_active"],
  "properties": {
    "id": {"type": "string"}, "class": {"type": "string"}, "object_id": {"type": "string"},
    "status": {"enum": ["Active", "Hibernating"]}, "sandbox_name": {"type": "string"},
    "created_at": {"type": "string", "format": "date-time"},
    "last_active": {"type": "string", "format": "date-time", "description":
      "Of its last event while it is in memory, else when it left memory last; a crash takes that."},
    "storage": {"type": "object"}, "storage_next": {"type": ["string", "null"]}}},
"ObjectAnswer": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true}, "data": {"$ref": "#/components/schemas/Object"}}},
"ObjectPage": {"type": "object", "required": ["success", "data", "next"], "properties": {
  "success": {"const": true}, "next": {"type": ["string", "null"]},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Object"}}}},
"Done": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true}, "data": {"type": "null"}}},
"NewAlarm": {"type": "object", "required": ["method"], "properties": {
  "method": {"type": "string"}, "args": {},
  "fire_at": {"type": "string", "format": "date-time"}, "delay_seconds": {"type": "number"}}},
"Alarm": {"type": "object", "required": ["id", "method", "args", "fire_at"], "properties": {
  "id": {"type": "string"}, "method": {"type": "string"}, "args": {"type": "array"},
  "fire_at": {"type": "string", "format": "date-time"}, "replaced": {"type": "boolean"}}},
"AlarmAnswer": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true}, "data": {"$ref": "#/components/schemas/Alarm"}}},
"AlarmPage": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true},
  "data": {"type": "object", "required": ["alarms", "next"], "properties": {
    "alarms": {"type": "array", "items": {"$ref": "#/components/schemas/Alarm"}},
    "next": {"type": ["string", "null"], "description": "The cursor of the next page."}}}}},

"Definition": {"type": "object", "required": ["class"], "properties": {
  "class": {"type": "string"}, "idle_timeout_seconds": {"type": "number"},
  "objects": {"type": "boolean"}}},
"DefinitionAnswer": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true}, "data": {"$ref": "#/components/schemas/Definition"}}},
"DefinitionList": {"type": "object", "required": ["success", "data"], "properties": {
  "success": {"const": true},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Definition"}}}},

"ConsoleLink": {"type": "object", "required": ["url", "valid_s"], "properties": {
  "url": {"type": "string"}, "valid_s": {"type": "integer"}}},
"NamedClass": {"type": "object", "properties": {"class": {"type": "string"}}},
"Version": {"type": "object",
  "required": ["file", "plugin", "version", "sha256", "generation", "state", "pinned_because",
               "classes"],
  "properties": {
    "file": {"type": "string"}, "plugin": {"type": "string"}, "version": {"type": "string"},
    "sha256": {"type": "string"}, "generation": {"type": "integer"}, "state": {"type": "string"},
    "pinned_because": {"type": ["string", "null"]},
    "classes": {"type": "array", "items": {"type": "string"}}}},
"PluginList": {"type": "object", "required": ["plugins", "refused", "moving", "settings"],
  "properties": {
    "plugins": {"type": "array", "items": {"$ref": "#/components/schemas/Version"}},
    "refused": {"type": "array", "items": {"type": "object", "required": ["file", "rule", "reason"]}},
    "moving": {"type": "array", "items": {"type": "string"}},
    "settings": {"type": "array", "items": {"type": "object", "required": ["class", "state", "reason"]}}}},
"GenerationList": {"type": "object", "required": ["generations"], "properties": {
  "generations": {"type": "array", "items": {"$ref": "#/components/schemas/Version"}}}},
"ReloadedFiles": {"type": "object", "required": ["files"], "properties": {
  "files": {"type": "array", "items": {"type": "object", "required": ["file", "outcome"],
    "properties": {"file": {"type": "string"}, "outcome": {"type": "string"}}}}}},
"ClassList": {"type": "object", "required": ["classes"], "properties": {
  "classes": {"type": "array", "items": {"type": "object",
    "required": ["class", "path", "aliases", "version", "library", "code", "refusal", "agents", "live"],
    "properties": {
      "class": {"type": "string"}, "path": {"type": "string"},
      "aliases": {"type": "array", "items": {"type": "string"}}, "version": {"type": "string"},
      "library": {"type": "string"}, "code": {"type": "string"}, "refusal": {"type": ["string", "null"]},
      "agents": {"type": "integer"}, "live": {"type": "integer"}}}}}},
"EventStream": {"type": "string"},
"MethodList": {"type": "object", "required": ["class", "methods"], "properties": {
  "class": {"type": "string"}, "methods": {"type": "array", "items": {"type": "object",
    "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
"QuarantineList": {"type": "object", "required": ["quarantined"], "properties": {
  "quarantined": {"type": "array", "items": {"type": "object",
    "required": ["class", "library", "sha256", "reason", "call", "since_ms"]}}}},
"BackupOrder": {"type": "object", "required": ["directory"], "properties": {
  "directory": {"type": "string"}, "rate": {"type": "integer"}}},
"Backup": {"type": "object", "required": ["state"], "properties": {
  "state": {"enum": ["none", "running", "done", "failed"]}, "directory": {"type": "string"},
  "mark_ms": {"type": "integer"}, "agents": {"type": "integer"}, "done": {"type": "integer"},
  "bytes": {"type": "integer"}, "linked": {"type": "integer"},
  "left_out": {"type": "integer"}, "reason": {"type": ["string", "null"]}}},
"Released": {"type": "object", "required": ["released", "files"], "properties": {
  "released": {"type": "string"}, "files": {"type": "array", "items": {"type": "object"}}}},
"Agent": {"type": "object",
  "required": ["name", "created_at_ms", "state", "connections", "version", "working", "next_wake_ms"],
  "properties": {
    "name": {"type": "string"}, "created_at_ms": {"type": ["integer", "null"]},
    "state": {"type": "string"}, "connections": {"type": "integer"},
    "version": {"type": ["string", "null"]}, "working": {"type": "boolean"},
    "next_wake_ms": {"type": ["integer", "null"]}}},
"AgentPage": {"type": "object", "required": ["class", "agents", "next"], "properties": {
  "class": {"type": "string"}, "next": {"type": ["string", "null"]},
  "agents": {"type": "array", "items": {"$ref": "#/components/schemas/Agent"}}}},
"Why": {"type": "object", "required": ["class", "agent", "state", "waits", "not_seen"],
  "properties": {
    "class": {"type": "string"}, "agent": {"type": "string"},
    "state": {"enum": ["cold", "waking", "live", "evicting", "unknown"]},
    "not_seen": {"type": ["string", "null"]},
    "waits": {"type": "array", "items": {"type": "object",
      "required": ["kind", "urgency", "what", "since_ms", "until_ms", "ends_by", "do",
        "run"],
      "properties": {
        "kind": {"type": "string"}, "urgency": {"enum": ["none", "long", "person"]},
        "what": {"type": "string"}, "since_ms": {"type": ["integer", "null"]},
        "until_ms": {"type": ["integer", "null"]}, "ends_by": {"type": ["string", "null"]},
        "do": {"type": ["string", "null"]}, "run": {"type": ["string", "null"]}}}}}},
"StuckPage": {"type": "object", "required": ["agents", "skipped", "next"], "properties": {
  "agents": {"type": "array", "items": {"$ref": "#/components/schemas/Why"}},
  "skipped": {"type": "array", "items": {"type": "object",
    "required": ["class", "agent", "reason"]}},
  "next": {"type": ["string", "null"]}}},
"WorkChange": {"type": "object", "properties": {
  "outcome": {"type": "object"}, "note": {"type": "string"}}},
"Work": {"type": "object", "required": ["kind", "id", "record"], "properties": {
  "kind": {"enum": ["fiber", "schedule", "item", "turn"]}, "id": {"type": "string"},
  "name": {"type": ["string", "null"]}, "state": {"type": ["string", "null"]},
  "created_at": {"type": ["integer", "null"]}, "next_at": {"type": ["integer", "null"]},
  "error": {"type": ["string", "null"]}, "record": {"type": ["object", "null"]},
  "operations": {"type": "array", "items": {"type": "object"},
    "description": "of a fiber: the operations that it has begun, as in OperationPage"}}},
"WorkPage": {"type": "object", "required": ["work", "next"], "properties": {
  "work": {"type": "array", "items": {"type": "object",
    "required": ["kind", "id", "name", "state", "created_at", "next_at", "error"]}},
  "next": {"type": ["string", "null"]}}},
"ChatPage": {"type": "object", "required": ["class", "chats", "skipped", "next"], "properties": {
  "class": {"type": "string"}, "next": {"type": ["string", "null"]},
  "chats": {"type": "array", "items": {"type": "object",
    "required": ["agent", "state", "turn", "since_ms", "waiting", "messages", "last_at_ms"],
    "properties": {
      "agent": {"type": "string"},
      "state": {"enum": ["running", "stopping", "waiting", "asks", "idle"]},
      "turn": {"type": ["string", "null"]}, "since_ms": {"type": ["integer", "null"]},
      "waiting": {"type": "integer"}, "messages": {"type": "integer"},
      "last_at_ms": {"type": ["integer", "null"]}}}},
  "skipped": {"type": "array", "items": {"type": "object",
    "required": ["class", "agent", "reason"]}}}},
"Sql": {"type": "object", "required": ["sql"], "properties": {"sql": {"type": "string"}}},
"SqlRows": {"type": "object", "required": ["columns", "rows", "truncated"], "properties": {
  "columns": {"type": "array", "items": {"type": "string"}},
  "rows": {"type": "array", "items": {"type": "array"}},
  "truncated": {"type": "boolean"}}},
"Evicted": {"type": "object", "required": ["evicted", "state"], "properties": {
  "evicted": {"type": "boolean"}, "state": {"type": "string"}}},
"Destroyed": {"type": "object", "required": ["destroyed"], "properties": {
  "destroyed": {"const": true}}},
"Operation": {"type": "object",
  "required": ["id", "kind", "effect", "state", "cost", "attempts", "started_at", "request"],
  "properties": {
    "id": {"type": "string"}, "kind": {"type": "string"},
    "effect": {"enum": ["read", "idempotent", "keyed", "probe", "unsafe"]},
    "state": {"enum": ["running", "interrupted", "completed", "not_executed", "unknown"]},
    "class": {"type": "string"}, "agent": {"type": "string"},
    "key": {"type": ["string", "null"]}, "scope": {"type": ["string", "null"]},
    "args": {"description": "JSON; of one operation, not in a list"},
    "result": {"description": "JSON; of one operation, not in a list"},
    "cost": {"type": "integer"}, "attempts": {"type": "integer"},
    "started_at": {"type": "integer"}, "horizon_at": {"type": ["integer", "null"]},
    "settled_at": {"type": ["integer", "null"]},
    "settled_by": {"type": ["string", "null"]}, "note": {"type": ["string", "null"]},
    "request": {"type": ["object", "null"],
      "description": "what the ledger knows of its request; null: it has sent none through it",
      "required": ["fingerprint", "dispatched_at", "status", "request_id", "stored_bytes", "whole"],
      "properties": {
        "fingerprint": {"type": "string"}, "dispatched_at": {"type": "integer"},
        "status": {"type": ["integer", "null"]}, "request_id": {"type": ["string", "null"]},
        "stored_bytes": {"type": "integer"}, "whole": {"type": "boolean"}}}}},
"OperationPage": {"type": "object", "required": ["operations", "skipped", "next"], "properties": {
  "operations": {"type": "array", "items": {"$ref": "#/components/schemas/Operation"}},
  "skipped": {"type": "array", "items": {"type": "object",
    "required": ["class", "agent", "reason"], "properties": {
      "class": {"type": "string"}, "agent": {"type": "string"}, "reason": {"type": "string"}}}},
  "next": {"type": ["string", "null"]}}},
"Resolution": {"type": "object", "required": ["outcome"], "properties": {
  "outcome": {"enum": ["completed", "not_executed"]}, "note": {"type": "string"}}},
"AuditPage": {"type": "object", "required": ["entries", "next"], "properties": {
  "entries": {"type": "array", "items": {"type": "object",
    "required": ["id", "at_ms", "event", "actor", "class", "agent", "detail"],
    "properties": {
      "id": {"type": "integer"}, "at_ms": {"type": "integer"}, "event": {"type": "string"},
      "actor": {"type": "string"}, "class": {"type": ["string", "null"]},
      "agent": {"type": ["string", "null"]},
      "detail": {"type": ["object", "null"], "properties": {
        "suppressed": {"type": "integer",
          "description": "Entries of this event and class before it that were too many."}}}}}}}}
})json";

}  // namespace

std::string_view openapi_schemas() {
  return kSchemas;
}

}  // namespace hearth::api
