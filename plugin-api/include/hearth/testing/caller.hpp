#pragma once
// How a function of the mock host finds out who calls it, and whether it may.

#include <hearth/testing/engine.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing::detail {

// What every [instance] function asks first. Bytes that the agent was lent before are void when the
// function returns: it may have been given a part of them.
struct Caller {
  Caller(const hearth_host* host, hearth_agent id, bool while_closing = false)
      : engine(Engine::of(host)) {
    if (!engine.on_owner_thread()) {
      status = HEARTH_E_WRONG_THREAD;
    } else if (agent = engine.find(id); !agent) {
      status = HEARTH_E_GONE;
    } else if (agent->closing && !while_closing) {
      status = HEARTH_E_CLOSING;
    } else {
      expiring.emplace(agent->lent);
    }
  }
  [[nodiscard]] bool bad() const { return status != HEARTH_OK; }

  hearth_status fail(hearth_status code, std::string text) const {
    agent->last_error = std::move(text);
    return code;
  }
  // Durable work is written with the turn, which a transaction of the agent's own must not take
  // back.
  [[nodiscard]] bool in_transaction() const { return agent->database.depth() > 0; }
  [[nodiscard]] hearth_status fail_in_transaction() const {
    return fail(HEARTH_E_INVALID, "not while a transaction of the agent's own is open");
  }
  // Lends `bytes` through `out`.
  hearth_status lend(std::string_view bytes, hearth_bytes* out) const {
    *out = agent->lent.lend(bytes);
    return HEARTH_OK;
  }
  [[nodiscard]] std::shared_ptr<ClientRecord> client(std::uint64_t number) const {
    const auto found = agent->clients.find(number);
    return found == agent->clients.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::shared_ptr<CallRecord> call(std::uint64_t id, std::uint32_t kind = 0) const {
    const auto found = agent->calls.find(id);
    if (found == agent->calls.end() || (kind != 0 && found->second->kind != kind)) return nullptr;
    return found->second;
  }

  Engine& engine;
  AgentRecord* agent = nullptr;
  hearth_status status = HEARTH_OK;
  std::optional<Slices::RecallAtEnd> expiring;
};

// 36 characters, like a UUID; readable in a failed test.
inline std::string durable_id(std::uint64_t number) {
  char text[37];
  static_cast<void>(std::snprintf(text, sizeof text, "00000000-0000-4000-8000-%012llx",
                                  static_cast<unsigned long long>(number)));
  return text;
}

// As the host has it.
inline bool is_json(std::string_view text) {
  return !hearth::detail::too_deep(text) && Json::accept(text);
}

inline bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(Json(std::string(text)).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

inline bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

inline const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return &value;
  }
  return nullptr;
}

}  // namespace hearth::testing::detail
