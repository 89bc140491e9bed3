#include "headwise/data/packed_ids.hpp"

#include <algorithm>

namespace headwise {
namespace {

/// Bytes of an id. Negative ones, which are labels and no tokens, take the whole Id.
std::size_t id_width(Index least, Index most) {
  return least < 0 || most > 0xFFFF ? 4 : most > 0xFF ? 2 : 1;
}

}  // namespace

PackedIds::PackedIds(Index vocab, std::size_t most)
    : bytes_(std::make_shared<std::vector<unsigned char>>()), width_(id_width(0, vocab - 1)) {
  bytes_->reserve(most * width_);
}

PackedIds::PackedIds(const std::vector<Id>& ids)
    : bytes_(std::make_shared<std::vector<unsigned char>>()) {
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  if (!ids.empty()) width_ = id_width(*least, *most);
  bytes_->reserve(ids.size() * width_);
  for (const Id id : ids) push_back(id);
}

void PackedIds::push_back(Id id) {
  // The lowest bytes come first, as in memory.
  for (std::size_t i = 0; i < width_; ++i)
    bytes_->push_back(static_cast<unsigned char>(static_cast<std::uint32_t>(id) >> 8 * i));
  ++end_;
}

Id PackedIds::operator[](std::size_t i) const {
  std::uint32_t id = 0;
  const unsigned char* at = bytes_->data() + (begin_ + i) * width_;
  for (std::size_t byte = 0; byte < width_; ++byte) id |= std::uint32_t{at[byte]} << 8 * byte;
  return static_cast<Id>(id);
}

PackedIds PackedIds::part(std::size_t begin, std::size_t end) const {
  require(begin <= end && end <= size(), "ids: [{}, {}) is no part of {}", begin, end, size());
  PackedIds part = *this;
  part.begin_ = begin_ + begin;
  part.end_ = begin_ + end;
  return part;
}

void PackedIds::append_to(std::vector<Id>& to, std::size_t begin, std::size_t end) const {
  require(begin <= end && end <= size(), "ids: [{}, {}) is no part of {}", begin, end, size());
  for (std::size_t i = begin; i < end; ++i) to.push_back((*this)[i]);
}

std::vector<Id> PackedIds::ids() const {
  std::vector<Id> all;
  all.reserve(size());
  append_to(all, 0, size());
  return all;
}

bool PackedIds::operator==(const PackedIds& other) const {
  if (size() != other.size()) return false;
  for (std::size_t i = 0; i < size(); ++i)
    if ((*this)[i] != other[i]) return false;
  return true;
}

}  // namespace headwise
