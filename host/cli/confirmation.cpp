#include "cli/confirmation.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace hearth::cli {

Confirmation ask_person(std::string_view question, int in, int out) {
  if (::isatty(in) == 0) return Confirmation::kNobody;
  while (!question.empty()) {
    const ssize_t written = ::write(out, question.data(), question.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Confirmation::kNobody;  // an unread question is not confirmed
    question.remove_prefix(static_cast<std::size_t>(written));
  }
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
