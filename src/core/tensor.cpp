#include "headwise/core/tensor.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "core/pool.hpp"

namespace headwise {
namespace {

template <Real T>
std::shared_ptr<T[]> allocate(Index n) {
  constexpr Index kMost = std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(T)) / 2;
  if (n > kMost) throw std::bad_alloc();  // before the bytes wrap around
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  return {static_cast<T*>(pool_take(bytes)), [bytes](T* p) { pool_give(p, bytes); }};
}

}  // namespace

template <Real T>
Tensor<T>::Tensor(const Shape& shape, std::span<const T> values)
    : shape_(shape), buffer_(allocate<T>(shape.size())) {
  require(static_cast<Index>(values.size()) == shape.size(), "tensor: {} values do not fill {}",
          values.size(), shape);
  std::copy(values.begin(), values.end(), buffer_.get());
}

template <Real T>
Tensor<T> Tensor<T>::full(const Shape& shape, T value) {
  Tensor x;
  x.shape_ = shape;
  x.buffer_ = allocate<T>(shape.size());
  std::fill_n(x.buffer_.get(), shape.size(), value);
  return x;
}

template <Real T>
Tensor<T> Tensor<T>::uninitialized(const Shape& shape) {
  if (poisoned()) return full(shape, std::numeric_limits<T>::quiet_NaN());
  Tensor x;
  x.shape_ = shape;
  x.buffer_ = allocate<T>(shape.size());
  return x;
}

template <Real T>
T* Tensor<T>::data() {
  if (buffer_.use_count() > 1) {
    std::shared_ptr<T[]> own = allocate<T>(shape_.size());
    std::copy_n(buffer_.get(), shape_.size(), own.get());
    buffer_ = std::move(own);
  } else {
    std::atomic_thread_fence(std::memory_order_acquire);  // after another thread's copy was made
  }
  return buffer_.get();
}

template <Real T>
Tensor<T> Tensor<T>::reshape(const Shape& shape) const {
  require(!empty() && shape.size() == shape_.size(), "reshape: {} elements of {} do not fill {}",
          size(), shape_, shape);
  Tensor x = *this;
  x.shape_ = shape;
  return x;
}

template <Real T>
T Tensor<T>::item() const {
  require(size() == 1, "item: {} has {} elements, not one", shape_, size());
  return buffer_[0];
}

template <Real To, Real From>
Tensor<To> convert(const Tensor<From>& x) {
  if (x.empty()) return {};
  Tensor<To> y = Tensor<To>::uninitialized(x.shape());
  std::transform(x.data(), x.data() + x.size(), y.data(),
                 [](From v) { return static_cast<To>(v); });
  return y;
}

template class Tensor<float>;
template class Tensor<double>;
template Tensor<float> convert(const Tensor<double>&);
template Tensor<double> convert(const Tensor<float>&);

}  // namespace headwise
