#pragma once
// The Date header.

#include <chrono>
#include <string>

namespace hearth::net {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7), whatever the locale. Pure.
[[nodiscard]] std::string http_date(std::chrono::sys_seconds at);

// The current date, rendered once a second.
//
// Threads   One loop's thread only.
class HttpDate {
 public:
  // Valid until the next call.
  [[nodiscard]] const std::string& now();

 private:
  std::chrono::sys_seconds at_{};
  std::string text_;
};

}  // namespace hearth::net
