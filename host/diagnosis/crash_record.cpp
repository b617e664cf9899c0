#include "diagnosis/crash_record.hpp"

#include "base/escape.hpp"

#include <array>
#include <charconv>
#include <system_error>

namespace hearth::diagnosis {
namespace {

constexpr std::string_view kFirstLine = "hearth crash 1\n";

// Appends to a buffer. Async-signal-safe.
class Writer {
 public:
  explicit Writer(std::span<char> buffer) : buffer_(buffer) {}

  void add(std::string_view text) {
    for (const char c : text.substr(0, kMaxCrashText)) {
      if (size_ < buffer_.size()) buffer_[size_++] = c;
    }
  }
  // Text from a library or a client.
  void add_foreign(std::string_view text) {
    for (const char c : text.substr(0, kMaxCrashText)) {
      const auto byte = static_cast<unsigned char>(c);
      const char shown = byte < 0x20 || byte == 0x7F ? '?' : c;
      add(std::string_view(&shown, 1));
    }
  }
  void add(std::uint64_t number) {
    std::array<char, 24> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    add(std::string_view(digits.data() + at, digits.size() - at));
  }
  void line(std::string_view key, std::string_view text) {
    add(key);
    add("=");
    add_foreign(text);
    add("\n");
  }
  void line(std::string_view key, std::uint64_t number) {
    add(key);
    add("=");
    add(number);
    add("\n");
  }
  [[nodiscard]] std::string_view text() const { return {buffer_.data(), size_}; }

 private:
  std::span<char> buffer_;
  std::size_t size_ = 0;
};

std::uint64_t unsigned_of(std::int64_t number) {
  return number < 0 ? 0 : static_cast<std::uint64_t>(number);
}

template <class Number>
void read_number(std::string_view text, Number& into) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) into = number;
}

void read_row(std::string_view text, std::optional<WorkMark>& into) {
  std::int64_t row = -1;
  read_number(text, row);
  if (row >= 0) into = WorkMark{row};
}

void read_line(std::string_view key, std::string_view value, CrashRecord& record) {
  if (key == "reason") record.reason = value;
  if (key == "time_ms") read_number(value, record.time_ms);
  if (key == "pid") read_number(value, record.pid);
  if (key == "library") record.library = value;
  if (key == "sha256") record.sha256 = value;
  if (key == "generation") read_number(value, record.generation);
  if (key == "class") record.agent_class = value;
  if (key == "agent") record.agent = value;
  if (key == "agent_digest") read_number(value, record.agent_digest);
  if (key == "job") read_row(value, record.work);
  if (key == "job_sender" && record.work) read_number(value, record.work->sender);
  if (key == "call") record.call = value;
  if (key == "method") record.method = value;
  if (key == "event_number") read_number(value, record.event_number);
  if (key == "trace") record.trace = value;
  if (key == "stack") record.stack = value;
  if (key == "running_ms") read_number(value, record.running_ms);
}

// A line without a line feed was cut off; it is ignored.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) take(line.substr(0, equals), line.substr(equals + 1));
  }
}

}  // namespace

std::string_view format_crash(const CrashReport& report,
                              std::span<char, kMaxCrashRecord> buffer) noexcept {
  Writer writer(buffer);
  writer.add(kFirstLine);
  writer.line("reason", report.reason);
  writer.line("time_ms", unsigned_of(report.time_ms));
  writer.line("pid", unsigned_of(report.pid));
  if (report.library.empty()) return writer.text();
  writer.line("class", report.agent_class);
  writer.line("sha256", report.sha256);
  writer.line("call", report.call);
  writer.line("method", report.method);
  if (report.event_number != 0) writer.line("event_number", report.event_number);
  if (!report.trace.empty()) writer.line("trace", report.trace);
  writer.line("agent", report.agent);
  if (report.agent_digest != 0) writer.line("agent_digest", report.agent_digest);
  if (report.work) writer.line("job", unsigned_of(report.work->row));
  if (report.work && report.work->sender != 0) writer.line("job_sender", report.work->sender);
  writer.line("generation", report.generation);
  writer.line("running_ms", unsigned_of(report.running_ms));
  writer.line("library", report.library);
  if (!report.stack.empty()) writer.line("stack", report.stack);
  return writer.text();
}

std::string_view format_frame(const CodePlaceView& frame,
                              std::span<char, kMaxCrashFrame> buffer) noexcept {
  Writer writer(buffer);
  writer.add("frame=");
  writer.add(frame.offset);
  writer.add(" ");
  writer.add_foreign(frame.file);
  writer.add("\n");
  return writer.text();
}

std::string format_stack(std::string_view stack) {
  return "stack=" + std::string(cut_text(stack, kMaxCrashStack)) + "\n";
}

std::vector<CodePlace> parse_frames(std::string_view text) {
  std::vector<CodePlace> frames;
  for_each_line(text, [&frames](std::string_view key, std::string_view value) {
    const std::size_t space = value.find(' ');
    if (key != "frame" || space == std::string_view::npos) return;
    CodePlace& frame = frames.emplace_back();
    read_number(value.substr(0, space), frame.offset);
    frame.file = value.substr(space + 1);
  });
  return frames;
}

std::string_view describe_crash(const CrashReport& report,
                                std::span<char, kMaxCrashRecord> buffer) noexcept {
  Writer writer(buffer);
  writer.add("hearth: the server ends (");
  writer.add(report.reason);
  writer.add(")");
  if (!report.library.empty()) {
    writer.add(report.call == kOwnThread ? " on a thread of " : " in a call into ");
    writer.add_foreign(report.library);
    if (!report.agent_class.empty()) {
      writer.add(", class ");
      writer.add_foreign(report.agent_class);
    }
    if (!report.agent.empty()) {
      writer.add(", agent ");
      writer.add_foreign(report.agent);
    }
    if (report.call != kOwnThread) {
      writer.add(", call ");
      writer.add(report.call);
    }
    if (!report.method.empty()) {
      writer.add(", method ");
      writer.add_foreign(report.method);
    }
  }
  writer.add("\n");
  return writer.text();
}

Result<CrashRecord> parse_crash(std::string_view text) {
  if (!text.starts_with(kFirstLine))
    return Error{Errc::kInvalidArgument, "it does not begin as the record of a crash"};
  text.remove_prefix(kFirstLine.size());
  CrashRecord record;
  for_each_line(text, [&record](std::string_view key, std::string_view value) {
    read_line(key, value, record);
  });
  if (record.reason.empty())
    return Error{Errc::kInvalidArgument, "the record of a crash ends before its reason"};
  return record;
}

}  // namespace hearth::diagnosis
