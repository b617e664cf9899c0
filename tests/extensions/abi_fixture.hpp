#pragma once
// The table of functions that a library gets, over an agent that the test plays.

#include "base/error.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/abi_status.hpp"
#include "extensions/test_agent.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"

#include <hearth/abi.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::extensions::testing {

using hearth::testing::TestDirectory;
using Lines = std::vector<std::string>;

inline constexpr hearth_agent kAgent = 41;
inline constexpr std::string_view kNotUtf8 = "\xff\xfe";

inline hearth_bytes slice(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(hearth_bytes bytes) {
  return {static_cast<const char*>(bytes.ptr), bytes.len};
}
inline bool has(hearth_bytes json, std::string_view part) {
  return view(json).find(part) != std::string_view::npos;
}
// The text of a member of the first record in `json`, without its quotes.
inline std::string text_in(hearth_bytes json, std::string_view member) {
  const std::string wanted = "\"" + std::string(member) + "\":\"";
  const auto at = view(json).find(wanted);
  if (at == std::string_view::npos) return {};
  const auto begin = at + wanted.size();
  return std::string(view(json).substr(begin, view(json).find('"', begin) - begin));
}
inline std::size_t count_in(hearth_bytes json, std::string_view part) {
  std::size_t count = 0;
  for (auto at = view(json).find(part); at != std::string_view::npos;
       at = view(json).find(part, at + part.size()))
    ++count;
  return count;
}
// A struct of the ABI with another value of one field.
template <class Struct, class Value>
Struct with(Struct given, Value Struct::* field, std::type_identity_t<Value> value) {
  given.*field = value;
  return given;
}
// Work that does nothing.
class NoRemote final : public RemoteOperation {
 public:
  void start(RemoteListener& /*listener*/) override {}
  void credit(std::uint64_t /*bytes*/) override {}
};

inline constexpr hearth_bytes kNullWithLength = {nullptr, 3};
inline constexpr hearth_bytes kNothing = {nullptr, 0};

class AbiHostTest : public ::testing::Test {
 protected:
  // `ports`: the agent's ways out of the server.
  explicit AbiHostTest(OutwardPorts ports = {}) : agent_(kAgent, {}, ports) {}

  template <class Table>
  const Table& extension(const char* id) {
    const void* const table = host_->get_extension(host_, id);
    if (table == nullptr) throw std::runtime_error(id);
    return *static_cast<const Table*>(table);
  }
  std::string last_error() {
    hearth_bytes text{};
    EXPECT_EQ(host_->last_error(host_, kAgent, &text), HEARTH_OK);
    return std::string(view(text));
  }
  // The text that a function lends for these arguments; otherwise the name of its status.
  template <class Function, class... Arguments>
  std::string lent(Function function, Arguments... arguments) {
    hearth_bytes text{};
    const hearth_status status = function(host_, kAgent, arguments..., &text);
    return status == HEARTH_OK ? std::string(view(text)) : std::string(status_name(status));
  }
  // Callers that every function refuses, each with its status.
  struct Caller {
    const hearth_host* host;
    hearth_agent agent;
    hearth_status status;
  };
  std::array<Caller, 3> refused_callers() const {
    return {{{host_, 1, HEARTH_E_GONE},
             {host_, TestDirectory::kElsewhere, HEARTH_E_WRONG_THREAD},
             {nullptr, kAgent, HEARTH_E_INVALID}}};
  }
  void answer(Errc code, std::string message = "because") {
    agent_.answer = Error{code, std::move(message)};
  }

  hearth::testing::TestAgent agent_;
  hearth::testing::TestDirectory agents_{&agent_};
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  AbiHost abi_{
      AbiServices{.agents = agents_, .clock = agent_.clock, .random = random_, .logger = logger_},
      "plain.so"};
  const hearth_host* const host_ = abi_.table();
};

}  // namespace hearth::extensions::testing
