// An agent that starts other processes. Plugin "children", class Children.
//
//   methods   inherited() -> what a process that is started now has open, except the three
//                 standard descriptors: "7 -> socket:[1234]" in each line
//             sleeper() -> the id of a process that sleeps for a minute
//             orphan() -> the id of a process whose parent has ended, and which ends soon
//             get(url) -> the status of the answer
//
// When it is loaded and unloaded, also in a trial, it appends a line to the file `inherited` of the
// working directory: "load: " or "unload: ", and what inherited() gives, in one line.
#include <hearth/agent.hpp>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace {

std::string output_of(const char* command) {
  struct Close {
    void operator()(std::FILE* stream) const { ::pclose(stream); }
  };
  const std::unique_ptr<std::FILE, Close> stream(::popen(command, "re"));
  std::string text;
  std::array<char, 4096> piece{};
  while (stream && std::fgets(piece.data(), piece.size(), stream.get()) != nullptr)
    text += piece.data();
  return text;
}

// `ls` opens the directory that it lists.
std::string inherited_now() {
  return output_of(
      "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]* -> .*\\)/\\1/p' | "
      "grep -v -e '^[012] ->' -e '/fd$'");
}

void note(const std::string& step) {
  std::string all = inherited_now();
  for (char& each : all)
    if (each == '\n') each = ';';
  std::ofstream("inherited", std::ios::app) << step + ": " + all + "\n";
}

// Of the library.
struct Life {
  Life() { note("load"); }
  ~Life() { note("unload"); }
};
const Life kLife;

}  // namespace

class Children : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Children>& m) {
    m.add("inherited", &Children::inherited);
    m.add("sleeper", &Children::sleeper);
    m.add("orphan", &Children::orphan);
    m.add("get", &Children::get);
  }

  std::string inherited() { return inherited_now(); }
  int sleeper() { return std::stoi(output_of("sleep 60 >/dev/null 2>&1 & echo $!")); }
  int orphan() { return std::stoi(output_of("sleep 0.02 >/dev/null 2>&1 & echo $!")); }
  hearth::Task<int> get(std::string url) {
    const auto response = co_await fetch(std::move(url));
    co_return static_cast<int>(response.status());
  }
};

HEARTH_PLUGIN("children", VERSION, Children)
