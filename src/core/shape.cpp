#include "headwise/core/shape.hpp"

#include <algorithm>

#include "headwise/core/error.hpp"

namespace headwise {

Shape::Shape(std::initializer_list<Index> sizes)
    : Shape(std::span<const Index>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const Index> sizes) : rank_(static_cast<Index>(sizes.size())) {
  require(rank_ <= kMaxRank, "shape: rank {} is more than {}", sizes.size(), kMaxRank);
  constexpr Index kMost = Index{1} << 62;
  for (Index i = 0; i < rank_; ++i) {
    const Index n = sizes[static_cast<std::size_t>(i)];
    require(n >= 0, "shape: size {} of axis {} is negative", n, i);
    require(n == 0 || size_ < kMost / n, "shape: ({}) has too many elements",
            fmt::join(sizes, ","));
    sizes_[static_cast<std::size_t>(i)] = n;
    size_ *= n;
  }
}

Index Shape::operator[](Index axis) const {
  const Index i = axis < 0 ? axis + rank_ : axis;
  require(i >= 0 && i < rank_, "shape: {} has no axis {}", *this, axis);
  return sizes_[static_cast<std::size_t>(i)];
}

Index Shape::rows() const {
  Index rows = 1;
  for (Index i = 0; i + 1 < rank_; ++i) rows *= (*this)[i];
  return rows;
}

Shape Shape::with_last(Index size) const {
  require(rank_ > 0, "shape: a scalar has no last axis");
  std::array<Index, kMaxRank> sizes = sizes_;
  sizes[static_cast<std::size_t>(rank_ - 1)] = size;
  return Shape(std::span<const Index>(sizes.data(), static_cast<std::size_t>(rank_)));
}

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape.sizes(), ","));
}

}  // namespace headwise
