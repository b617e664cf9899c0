#include "net/message_packing.hpp"

#include "base/utf8.hpp"

namespace hearth::net {
namespace {

constexpr std::size_t kKeptRoom = std::size_t{64} << 10;
// For a client that keeps no context: it may use any window.
constexpr int kWholeWindowBits = 15;

void give_back(std::string& room) {
  room.clear();
  if (room.capacity() > kKeptRoom) room.shrink_to_fit();
}

}  // namespace

MessagePacking::MessagePacking(const DeflateTerms& terms, PackingShare& share, ClientMemory& memory)
    : terms_(terms),
      share_(share),
      frames_(std::make_shared<PackedFrames>()),
      kept_(memory),
      unpacked_(memory) {}

ReceivedMessage MessagePacking::receive(std::string_view arrived, std::size_t most) {
  const PackedFrames::Mark mark = frames_->take();
  if (!mark.is_packed) return {Unpacked::kWhole, arrived, mark.is_text};
  MessageInflater* const inflater = this->inflater();
  if (inflater == nullptr) return {Unpacked::kNoMemory, {}, mark.is_text};
  const Unpacked outcome = inflater->unpack(arrived, most, share_.unpacked, unpacked_);
  if (outcome == Unpacked::kWhole && mark.is_text && !is_valid_utf8(share_.unpacked)) {
    return {Unpacked::kNotText, {}, true};
  }
  return {outcome, share_.unpacked, mark.is_text};
}

void MessagePacking::done() {
  unpacked_.set(0);
  give_back(share_.unpacked);
}

std::optional<std::string_view> MessagePacking::pack(std::string_view message) {
  if (message.size() < kSmallest || message.size() > kLargest) return std::nullopt;
  MessageDeflater* const deflater = this->deflater();
  if (deflater == nullptr) return std::nullopt;
  give_back(share_.packed);  // of the previous message
  deflater->pack(message, share_.packed);
  // With a context the client needs the packed message, because later ones may refer to it.
  if (!terms_.server_keeps_context && share_.packed.size() >= message.size()) return std::nullopt;
  return share_.packed;
}

MessageDeflater* MessagePacking::deflater() {
  if (!terms_.server_keeps_context) {
    if (!share_.deflater) share_.deflater = std::make_unique<MessageDeflater>();
    share_.deflater->forget();
    return share_.deflater.get();
  }
  if (!deflater_ && may_keep(MessageDeflater::kMemory)) {
    deflater_ = std::make_unique<MessageDeflater>();
  }
  return deflater_.get();
}

MessageInflater* MessagePacking::inflater() {
  if (!terms_.client_keeps_context) {
    if (!share_.inflater) share_.inflater = std::make_unique<MessageInflater>(kWholeWindowBits);
    share_.inflater->forget();
    return share_.inflater.get();
  }
  if (!inflater_ && may_keep(MessageInflater::memory_for(kDeflateWindowBits))) {
    inflater_ = std::make_unique<MessageInflater>(kDeflateWindowBits);
  }
  return inflater_.get();
}

bool MessagePacking::may_keep(std::size_t more) {
  const std::size_t before = kept_.bytes();
  kept_.set(before + more);
  if (!kept_.refused()) return true;
  kept_.set(before);
  return false;
}

}  // namespace hearth::net
