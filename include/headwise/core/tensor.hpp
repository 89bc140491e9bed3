// A tensor is a value: contiguous, row-major. Copies share storage until one of them is written.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headwise/core/error.hpp"
#include "headwise/core/shape.hpp"

namespace headwise {

/// A contiguous, row-major array of T. Copying and reshaping cost nothing and behave like a deep
/// copy: the first write to a shared buffer copies it (see the non-const data()).
template <Real T>
class Tensor {
 public:
  Tensor() = default;  ///< no tensor at all: empty()

  /// Throws ShapeError when the number of values is not what the shape needs.
  Tensor(const Shape& shape, std::span<const T> values);
  Tensor(const Shape& shape, std::initializer_list<T> values)
      : Tensor(shape, std::span<const T>(values.begin(), values.size())) {}

  static Tensor zeros(const Shape& shape) { return full(shape, T(0)); }
  static Tensor full(const Shape& shape, T value);
  /// Contents are whatever was there (NaN while poison_uninitialized is on): write every element.
  static Tensor uninitialized(const Shape& shape);

  [[nodiscard]] bool empty() const { return !buffer_; }
  /// Whether this is the other one, or a copy of it that nobody has written to since.
  [[nodiscard]] bool shares(const Tensor& other) const { return buffer_ == other.buffer_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Index size() const { return empty() ? 0 : shape_.size(); }

  [[nodiscard]] const T* data() const { return buffer_.get(); }
  /// For writing. Detaches first when the storage has another owner, so take it once, outside
  /// loops and parallel regions.
  [[nodiscard]] T* data();
  [[nodiscard]] std::span<const T> values() const {
    return {data(), static_cast<std::size_t>(size())};
  }

  /// The same elements under another shape. Throws ShapeError when the sizes differ.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  /// The only element. Throws ShapeError when there is more than one, or none.
  [[nodiscard]] T item() const;

 private:
  Shape shape_;
  std::shared_ptr<T[]> buffer_;
};

/// The same shape in the other precision.
template <Real To, Real From>
Tensor<To> convert(const Tensor<From>& x);

extern template class Tensor<float>;
extern template class Tensor<double>;

}  // namespace headwise
