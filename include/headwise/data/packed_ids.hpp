// The tokens of a text, in as few bytes as its vocabulary needs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "headwise/core/ids.hpp"

namespace headwise {

/// Ids in 1, 2 or 4 bytes each: characters of most texts take a byte. Copies and parts share the
/// storage.
class PackedIds {
 public:
  PackedIds() = default;
  /// A list, packed.
  PackedIds(const std::vector<Id>& ids);
  /// None yet; for ids from 0 to `vocab` - 1, and room for `most` of them.
  PackedIds(Index vocab, std::size_t most);

  /// Adds an id, before copies or parts are made.
  void push_back(Id id);

  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Id operator[](std::size_t i) const;
  /// Those from `begin` to `end`, without copying.
  [[nodiscard]] PackedIds part(std::size_t begin, std::size_t end) const;
  /// Adds those from `begin` to `end` to a list.
  void append_to(std::vector<Id>& to, std::size_t begin, std::size_t end) const;
  /// All as a list.
  [[nodiscard]] std::vector<Id> ids() const;
  /// Whether both have the same ids, in whatever width.
  bool operator==(const PackedIds& other) const;

 private:
  std::shared_ptr<std::vector<unsigned char>> bytes_;
  std::size_t width_ = 1, begin_ = 0, end_ = 0;  // bytes of an id; ids of the storage
};

}  // namespace headwise
