#pragma once
// Parts of a text: of a log, an answer, or what a command prints.

#include "net/raw_client.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hearth::testing {

// Whether a text has all of these parts. If not, the failure says which one is missing.
template <class... Parts>
::testing::AssertionResult contains(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...}) {
    if (text.find(part) == std::string_view::npos)
      return ::testing::AssertionFailure() << '"' << part << "\" is missing in: " << text;
  }
  return ::testing::AssertionSuccess();
}
// Whether it has none of them.
template <class... Parts>
::testing::AssertionResult lacks(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...}) {
    if (text.find(part) != std::string_view::npos)
      return ::testing::AssertionFailure() << '"' << part << "\" is in: " << text;
  }
  return ::testing::AssertionSuccess();
}
// Whether an answer has this status, and its body all of these parts.
template <class... Parts>
::testing::AssertionResult answers(const Reply& reply, int status, const Parts&... parts) {
  if (reply.status == status) return contains(reply.body, parts...);
  return ::testing::AssertionFailure() << "status " << reply.status << ": " << reply.body;
}
// Its status and its body.
template <class Answer>
std::string answer_of(const Answer& answer) {
  return std::to_string(answer.status) + ' ' + answer.body;
}
// How often a text has this part.
inline std::size_t times_in(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++times;
  return times;
}
// From the last `event` of a log to the end of its line; if there is none, "no " and the event.
inline std::string line_of(const std::string& log, const std::string& event) {
  const std::size_t at = log.rfind(event);
  return at == std::string::npos ? "no " + event : log.substr(at, log.find('\n', at) - at);
}

}  // namespace hearth::testing
