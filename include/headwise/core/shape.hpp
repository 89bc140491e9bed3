// Sizes of a tensor. The letters in comments, everywhere: B batch, T time, C width, H heads,
// D head width, V vocabulary, L layers; S keys where they are not T; N rows.
#pragma once

#include <fmt/format.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace headwise {

/// Counts and positions, everywhere.
using Index = std::int64_t;

/// The two precisions: float trains, double proves.
template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, double>;

/// Sizes of a tensor, outermost first. Rank 0 is a scalar of one element.
class Shape {
 public:
  static constexpr Index kMaxRank = 6;

  Shape() = default;
  /// Throws ShapeError for a negative size, more than kMaxRank sizes, or 2^62 elements and more.
  Shape(std::initializer_list<Index> sizes);
  explicit Shape(std::span<const Index> sizes);

  [[nodiscard]] Index rank() const { return rank_; }
  [[nodiscard]] Index size() const { return size_; }  ///< number of elements
  /// Size of one axis; -1 is the last. Throws ShapeError when there is no such axis.
  Index operator[](Index axis) const;

  [[nodiscard]] Index last() const { return rank_ == 0 ? 1 : (*this)[-1]; }
  /// Product of all sizes but the last: the rows of the matrix this shape is when seen as (N,
  /// last).
  [[nodiscard]] Index rows() const;
  /// The same sizes with another last one.
  [[nodiscard]] Shape with_last(Index size) const;

  [[nodiscard]] std::span<const Index> sizes() const {
    return {sizes_.data(), static_cast<std::size_t>(rank_)};
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<Index, kMaxRank> sizes_{};
  Index rank_ = 0;
  Index size_ = 1;
};

/// "(2,3)"; "()" for a scalar.
std::string to_string(const Shape& shape);

}  // namespace headwise

template <>
struct fmt::formatter<headwise::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const headwise::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(headwise::to_string(shape), context);
  }
};
