#include "mock/body_upload.hpp"

#include "mock/stored_agent.hpp"

#include <stdexcept>
#include <utility>

namespace hearth::mock {

// Its listener keeps each piece until no code of the agent runs.
class BodyUpload::Read final : public extensions::RemoteOperation {
 public:
  Read(std::shared_ptr<BodyUpload> upload, std::uint64_t window)
      : left(static_cast<std::int64_t>(window)), upload_(std::move(upload)) {
    upload_->read_ = this;
  }
  ~Read() override { upload_->read_ = nullptr; }

  void start(extensions::RemoteListener& its_listener) override {
    listener = &its_listener;
    upload_->pass_on();
  }
  void credit(std::uint64_t bytes) override {
    left += static_cast<std::int64_t>(bytes);
    upload_->pass_on();
  }

  std::int64_t left;
  extensions::RemoteListener* listener = nullptr;

 private:
  const std::shared_ptr<BodyUpload> upload_;
};

extensions::BodyReader BodyUpload::reader() {
  return [self = shared_from_this()](std::uint64_t window) {
    return std::make_unique<Read>(self, window);
  };
}

void BodyUpload::send(std::string_view piece) {
  if (!piece.empty()) pieces_.emplace_back(piece);
  pass_on();
  world_.settle();
}

void BodyUpload::finish(Result<std::string> outcome) {
  end_ = std::move(outcome);
  pass_on();
  world_.settle();
}

std::size_t BodyUpload::unread() const {
  std::size_t bytes = 0;
  for (const std::string& piece : pieces_) bytes += piece.size();
  return bytes;
}

void BodyUpload::pass_on() {
  if (read_ == nullptr || read_->listener == nullptr) return;
  while (!pieces_.empty() && read_->left > 0) {
    read_->left -= static_cast<std::int64_t>(pieces_.front().size());
    read_->listener->part(std::move(pieces_.front()), 0);
    pieces_.pop_front();
  }
  if (!pieces_.empty()) return;
  if (const auto end = std::exchange(end_, std::nullopt))
    std::exchange(read_->listener, nullptr)->end(*end, 0);
}

std::shared_ptr<testing::detail::Upload> StoredAgent::upload(std::string_view method,
                                                             std::string_view path,
                                                             testing::Headers headers,
                                                             std::string claims) {
  if (!has(HEARTH_CLASS_READS_BODIES))
    throw std::logic_error("the class has no kReadsBodies: its requests have whole bodies");
  auto upload = std::make_shared<BodyUpload>(world_);
  send({.kind = extensions::EventKind::kRequest,
        .name = std::string(method),
        .flags = extensions::kUnreadBody,
        .target = target_ + std::string(path),
        .headers = std::move(headers),
        .claims = std::move(claims),
        .reader = upload->reader(),
        .record = upload->call()});
  world_.settle();
  return upload;
}

}  // namespace hearth::mock
