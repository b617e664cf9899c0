#include "cli/confirmation.hpp"

#include "base/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace hearth::cli {

Confirmation ask_person(std::string_view question, int in, int out) {
  if (::isatty(in) == 0) return Confirmation::kNobody;
  // An unread question is not confirmed.
  if (write_all(out, question) != 0) return Confirmation::kNobody;
  constexpr std::size_t kMaxLine = 64;  // a longer line is no yes
  std::string line;
  while (line.size() < kMaxLine) {
    char c = 0;
    const ssize_t got = ::read(in, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Confirmation::kNo;
    if (c == '\n') break;
    line += c;
  }
  return line == "y" || line == "yes" ? Confirmation::kYes : Confirmation::kNo;
}

}  // namespace hearth::cli
