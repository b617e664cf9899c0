#include "lenient.hpp"

#include <hearth/chat/answer.hpp>
#include <hearth/chat/chunk.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {
namespace {

constexpr const char* kNoObject = "The input is not a JSON object, or is nested too deeply.";

// Text that is no object, or an object in a JSON string, or nothing at all.
std::optional<Json> read_input(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return Json::object();
  auto value = parse_any(text);
  if (value && value->is_string()) value = parse_any(as_text(*value));
  if (value && value->is_null()) return Json::object();
  if (!value || !value->is_object() || parts::is_deeper(*value, kMaxValueDepth))
    return std::nullopt;
  return value;
}

// What of `whole` is behind its first `known` bytes.
std::string_view behind(std::string_view whole, std::size_t known) {
  return known < whole.size() ? whole.substr(known) : std::string_view();
}

}  // namespace

ModelAnswer::ModelAnswer(std::string ids, std::string open_text,
                         std::set<std::string, std::less<>> taken)
    : ids_(std::move(ids)),
      taken_(std::move(taken)),
      adopted_(std::move(open_text)),
      in_step_(!adopted_.empty()) {}

// ---- chunks

void ModelAnswer::begin_step() {
  if (in_step_) return;
  in_step_ = true;
  chunks_.push_back(Json{{"type", "start-step"}});
}

void ModelAnswer::add(Json chunk) {
  begin_step();
  chunks_.push_back(std::move(chunk));
}

void ModelAnswer::add_delta(const char* type, const char* id_name, const std::string& id,
                            const char* delta_name, std::string_view delta) {
  if (delta.empty()) return;
  begin_step();
  append_chunk(chunks_, Json{{"type", type}, {id_name, id}, {delta_name, std::string(delta)}});
}

std::vector<Json> ModelAnswer::take() {
  return std::exchange(chunks_, {});
}

// ---- parts

ModelAnswer::Part* ModelAnswer::find(Kind kind, std::string_view key) {
  const auto found = std::find_if(parts_.rbegin(), parts_.rend(), [&](const Part& part) {
    return part.kind == kind && part.key == key;
  });
  return found == parts_.rend() ? nullptr : &*found;
}

std::size_t ModelAnswer::bytes(Kind kind, std::string_view key) const {
  std::size_t sum = 0;
  for (const Part& part : parts_)
    if (part.kind == kind && part.key == key) sum += part.bytes;
  return sum;
}

ModelAnswer::Part* ModelAnswer::opened(Kind kind, std::string_view key) {
  if (has_ended()) return nullptr;
  if (Part* part = find(kind, key); part && part->is_open) return part;
  if (parts_.size() >= kMaxParts) {
    fail({FailureKind::kInvalid, "the answer has too many parts"});
    return nullptr;
  }
  // Reasoning may come before the text that goes on in the adopted part.
  if (kind == Kind::kCall && !adopted_.empty())
    add(Json{{"type", "text-end"}, {"id", std::exchange(adopted_, {})}});
  close_text_and_reasoning();
  Part part{kind, std::string(key)};
  if (kind == Kind::kText && !adopted_.empty()) {
    part.id = std::exchange(adopted_, {});
  } else if (kind != Kind::kCall) {
    part.id = (kind == Kind::kText ? "t" : "r") + std::to_string(parts_.size());
    add(Json{{"type", kind == Kind::kText ? "text-start" : "reasoning-start"}, {"id", part.id}});
  }
  return &parts_.emplace_back(std::move(part));
}

void ModelAnswer::close_text_and_reasoning() {
  for (Part& part : parts_)
    if (part.kind != Kind::kCall) close(part);
}

void ModelAnswer::grow(Part& part, std::string_view delta) {
  part.bytes += delta.size();
  if (part.kind == Kind::kCall) {
    part.input += delta;
    if (!part.id.empty())
      add_delta("tool-input-delta", "toolCallId", part.id, "inputTextDelta", delta);
  } else {
    add_delta(part.kind == Kind::kText ? "text-delta" : "reasoning-delta", "id", part.id, "delta",
              delta);
  }
}

void ModelAnswer::close(Part& part) {
  if (!part.is_open) return;
  if (part.kind == Kind::kCall) return close_call(part);
  part.is_open = false;
  Json chunk{{"type", part.kind == Kind::kText ? "text-end" : "reasoning-end"}, {"id", part.id}};
  if (!part.metadata.empty()) chunk["providerMetadata"] = part.metadata;
  add(std::move(chunk));
}

void ModelAnswer::text(std::string_view key, std::string_view delta) {
  if (delta.empty()) return;  // many streams begin with an empty one, also before reasoning
  if (Part* part = opened(Kind::kText, key)) grow(*part, delta);
}

void ModelAnswer::reasoning(std::string_view key, std::string_view delta, const Json& metadata) {
  if (delta.empty() && metadata.is_null()) return;
  Part* part = opened(Kind::kReasoning, key);
  if (!part) return;
  grow(*part, delta);
  if (metadata.is_object()) part->metadata.update(metadata, true);
}

void ModelAnswer::end_text(std::string_view key) {
  if (Part* part = find(Kind::kText, key); part && !has_ended()) close(*part);
}

void ModelAnswer::end_reasoning(std::string_view key) {
  if (Part* part = find(Kind::kReasoning, key); part && !has_ended()) close(*part);
}

void ModelAnswer::whole_text(std::string_view key, std::string_view text) {
  this->text(key, behind(text, bytes(Kind::kText, key)));
}

void ModelAnswer::whole_reasoning(std::string_view key, std::string_view text) {
  reasoning(key, behind(text, bytes(Kind::kReasoning, key)));
}

// ---- calls

std::string ModelAnswer::call_id(std::string_view given) const {
  const auto is_taken = [&](std::string_view id) {
    return taken_.contains(id) || std::ranges::any_of(parts_, [&](const Part& part) {
             return part.kind == Kind::kCall && part.id == id;
           });
  };
  if (!given.empty() && given.size() <= kMaxIdBytes && !is_taken(given)) return std::string(given);
  std::size_t number = 0;
  std::string id;
  do id = "call_" + ids_ + "_" + std::to_string(number++);
  while (is_taken(id));
  return id;
}

void ModelAnswer::call(std::string_view key, std::string_view id, std::string_view tool,
                       bool is_executed_by_provider) {
  const Part* known = find(Kind::kCall, key);
  if (known && !known->is_open) return;  // repeated as a whole
  Part* part = opened(Kind::kCall, key);
  if (!part || !part->id.empty()) return;
  part->is_executed_by_provider = is_executed_by_provider;
  if (part->given_id.empty()) part->given_id = id;
  if (tool.size() <= kMaxIdBytes) part->tool = tool;
  if (!part->tool.empty()) show_call(*part);
}

void ModelAnswer::show_call(Part& part) {
  part.id = call_id(part.given_id);
  Json chunk{{"type", "tool-input-start"}, {"toolCallId", part.id}, {"toolName", part.tool}};
  if (part.is_executed_by_provider) chunk["providerExecuted"] = true;
  add(std::move(chunk));
  add_delta("tool-input-delta", "toolCallId", part.id, "inputTextDelta", part.input);
}

void ModelAnswer::input(std::string_view key, std::string_view delta) {
  Part* part = find(Kind::kCall, key);
  if (part && part->is_open && !has_ended()) grow(*part, delta);
}

void ModelAnswer::whole_input(std::string_view key, std::string_view text) {
  input(key, behind(text, bytes(Kind::kCall, key)));
}

void ModelAnswer::end_call(std::string_view key) {
  if (Part* part = find(Kind::kCall, key); part && !has_ended()) close(*part);
}

void ModelAnswer::close_call(Part& part) {
  if (part.id.empty()) {
    part.tool = "unknown";  // the caller has no such tool, and says so to the model
    show_call(part);
  }
  part.is_open = false;
  const auto input = read_input(part.input);
  Json chunk{{"type", input ? "tool-input-available" : "tool-input-error"},
             {"toolCallId", part.id},
             {"toolName", part.tool},
             {"input", input ? *input : Json(part.input)}};
  if (!input) chunk["errorText"] = kNoObject;
  if (part.is_executed_by_provider) {
    chunk["providerExecuted"] = true;
  } else {
    calls_.push_back({part.id, part.tool, chunk["input"], input ? "" : kNoObject});
  }
  add(std::move(chunk));
}

void ModelAnswer::result(std::string_view key, const Json& output) {
  Part* part = find(Kind::kCall, key);
  if (!part || has_ended() || !part->is_executed_by_provider || part->tool.empty()) return;
  close(*part);
  if (std::exchange(part->has_result, true)) return;  // repeated as a whole
  add(Json{{"type", "tool-output-available"},
           {"toolCallId", part->id},
           {"output", parts::is_deeper(output, kMaxValueDepth) ? Json(to_text(output)) : output},
           {"providerExecuted", true}});
}

void ModelAnswer::chunk(Json chunk) {
  if (!has_ended()) add(std::move(chunk));
}

// ---- the end

void ModelAnswer::finish(std::string_view reason, bool may_end_here) {
  if (has_ended()) return;
  reason_ = reason;
  may_end_here_ = may_end_here;
}

void ModelAnswer::complete() {
  if (has_ended()) return;
  if (!adopted_.empty()) add(Json{{"type", "text-end"}, {"id", std::exchange(adopted_, {})}});
  for (Part& part : parts_) close(part);
  if (reason_.empty()) reason_ = "other";
  // Some servers say `stop` although they have sent calls.
  if (reason_ == "stop" && !calls_.empty()) reason_ = "tool-calls";
  add(Json{{"type", "finish-step"}});
  is_whole_ = true;
}

void ModelAnswer::fail(Failure failure) {
  if (!has_ended()) failure_ = std::move(failure);
}

void ModelAnswer::end(std::string_view how) {
  if (may_end_here_) complete();
  fail({FailureKind::kCut, std::string(how)});
}

bool ModelAnswer::has_content() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return (part.kind == Kind::kText && part.bytes > 0) ||
           (part.kind == Kind::kCall && !part.is_open);
  });
}

}  // namespace hearth::chat
