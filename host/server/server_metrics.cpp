#include "server/server_metrics.hpp"

#include <hearth/abi.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <dirent.h>

namespace hearth::server {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// proc(5): /proc/pid/statm, in pages; the second number is the resident set.
double resident_bytes() {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen("/proc/self/statm", "re"));
  unsigned long pages = 0;
  if (!file || std::fscanf(file.get(), "%*u %lu", &pages) != 1) return 0;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  // Since Linux 6.2 the size of the directory is the number of descriptors. Before, it is 0, and
  // they must be counted.
  struct stat facts{};
  if (::stat("/proc/self/fd", &facts) == 0 && facts.st_size > 0)
    return static_cast<double>(facts.st_size);
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir("/proc/self/fd"));
  if (!directory) return 0;
  long count = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): our own DIR
  while (::readdir(directory.get()) != nullptr) ++count;
  return static_cast<double>(count - 3);  // without ".", ".." and the descriptor of this reading
}

double most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

double cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::filesystem::space_info space_of(const storage::DataDirectory& data) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(data.path(), failed);
  return failed ? std::filesystem::space_info{} : space;
}

}  // namespace

ServerMetrics::ServerMetrics(Metrics& metrics, const Logger& logger, const Clock& clock) {
  const std::string abi = std::to_string(HEARTH_ABI_MAJOR) + "." + std::to_string(HEARTH_ABI_MINOR);
  watches_.push_back(metrics.watch_gauge("hearth_build_info", "What this server is; always 1.",
                                         [] { return 1.0; },
                                         {{"version", HEARTH_VERSION}, {"abi", abi}}));
  const auto gauge = [&](const char* name, const char* help, auto read) {
    watches_.push_back(metrics.watch_gauge(name, help, read));
  };
  const auto counter = [&](const char* name, const char* help, auto read) {
    watches_.push_back(metrics.watch_counter(name, help, read));
  };
  gauge("hearth_uptime_seconds", "Since the server was started.",
        [&clock, start = clock.steady_now()] {
          return std::chrono::duration<double>(clock.steady_now() - start).count();
        });
  gauge("hearth_process_resident_memory_bytes", "Memory of the process that is in RAM.",
        resident_bytes);
  gauge("hearth_process_open_descriptors", "Open files and sockets.", open_descriptors);
  gauge("hearth_process_max_descriptors", "How many may be open at once.", most_descriptors);
  counter("hearth_process_cpu_seconds_total", "Processor time, of all threads.", cpu_seconds);
  counter("hearth_log_lost_bytes_total", "Bytes of log lines that could not be written.",
          [&logger] { return static_cast<double>(logger.dropped().bytes); });
  counter("hearth_log_lines_dropped_total", "Lines of the log that could not be written.",
          [&logger] { return static_cast<double>(logger.dropped().lines); });
}

std::vector<Metrics::Watch> watch_storage(Metrics& metrics, const storage::DataDirectory& data) {
  std::vector<Metrics::Watch> figures;
  const auto gauge = [&](const char* name, const char* help, auto read) {
    figures.push_back(metrics.watch_gauge(name, help, [&data, read] { return read(data); }));
  };
  using Data = storage::DataDirectory;
  gauge("hearth_storage_free_bytes", "Room on the disk of the data directory.",
        [](const Data& its) { return static_cast<double>(space_of(its).available); });
  gauge("hearth_storage_size_bytes", "Size of the disk of the data directory.",
        [](const Data& its) { return static_cast<double>(space_of(its).capacity); });
  gauge("hearth_storage_full", "1 while no write of an agent is taken, for want of room.",
        [](const Data& its) { return its.has_room() ? 0.0 : 1.0; });
  return figures;
}

}  // namespace hearth::server
