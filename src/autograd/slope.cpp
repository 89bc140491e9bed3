#include "autograd/slope.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/thrown.hpp"

namespace headwise {
namespace {

/// sum w (a - b).
template <Real T>
double projected(std::span<const double> w, const Tensor<T>& a, const Tensor<T>& b) {
  const T *x = a.data(), *z = b.data();
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i)
    sum += w[i] * (static_cast<double>(x[i]) - static_cast<double>(z[i]));
  return sum;
}

enum class Finiteness { finite, overflow, nan };

template <Real T>
Finiteness kind_of(const Tensor<T>& y) {
  Finiteness kind = Finiteness::finite;
  for (const T v : y.values()) {
    if (std::isnan(v)) return Finiteness::nan;
    if (std::isinf(v)) kind = Finiteness::overflow;
  }
  return kind;
}

}  // namespace

template <Real T>
Difference difference(const Tensor<T>& y, std::span<const double> w, double h, Line<T>& line) {
  const Tensor<T> above = line.y(h), below = line.y(-h);
  const double up = line.distance(h), down = line.distance(-h);
  return {projected(w, above, below) / (up - down), projected(w, y, below) / -down,
          projected(w, above, y) / up};
}

template <Real T>
Slope slope(const Tensor<T>& y, std::span<const double> w, double h, Line<T>& line,
            std::span<double> each) try {
  // Weights of the central differences over h, h/2, h/4: each pair removes the next even power.
  static constexpr std::array<double, 3> kPart = {1.0 / 45, -20.0 / 45, 64.0 / 45};
  std::array<double, 3> central{}, left{}, right{};
  Slope s;
  bool nan = false;
  std::fill(each.begin(), each.end(), 0.0);
  for (std::size_t k = 0; k < 3; ++k, h /= 2) {
    const Tensor<T> above = line.y(h), below = line.y(-h);
    s.reshaped = above.shape() != y.shape() || below.shape() != y.shape();
    if (s.reshaped) return s;
    for (const Tensor<T>* one : {&above, &below}) {
      const Finiteness kind = kind_of(*one);
      nan = nan || kind == Finiteness::nan;
      s.overflow = s.overflow || kind == Finiteness::overflow;
    }
    const double up = line.distance(h), down = line.distance(-h), both = up - down;
    central[k] = projected(w, above, below) / both;
    left[k] = projected(w, y, below) / -down;
    right[k] = projected(w, above, y) / up;
    const T *a = above.data(), *b = below.data();
    for (std::size_t i = 0; i < each.size(); ++i)
      each[i] += kPart[k] * (static_cast<double>(a[i]) - static_cast<double>(b[i])) / both;
  }
  const auto one_sided = [](const std::array<double, 3>& d) {  // removes h, then h^2
    return (4 * (2 * d[2] - d[1]) - (2 * d[1] - d[0])) / 3;
  };
  const double first = (4 * central[1] - central[0]) / 3,
               second = (4 * central[2] - central[1]) / 3;
  s.value = (16 * second - first) / 15;
  s.left = one_sided(left);
  s.right = one_sided(right);
  s.doubt = std::fabs(second - first);
  s.overflow = s.overflow && !nan;
  return s;
} catch (...) {
  return {.thrown = thrown()};
}

template <Real T>
Tensor<T> rounded(const Tensor<double>& x) {
  if constexpr (std::same_as<T, double>)
    return x;
  else
    return convert<T>(x);
}

template <Real T>
Tensor<T> along(const Tensor<T>& x, double s, const Tensor<double>& v) {
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  T* out = y.data();
  for (Index i = 0; i < y.size(); ++i)
    out[i] = static_cast<T>(static_cast<double>(x.data()[i]) + s * v.data()[i]);
  return y;
}

template <Real T>
double largest(const Tensor<T>& x) {
  double most = 0;
  for (const T v : x.values()) {
    if (std::isnan(v)) return static_cast<double>(v);
    most = std::max(most, std::fabs(static_cast<double>(v)));
  }
  return most;
}

template <Real T>
double step_for(const Tensor<T>& x, double eps) {
  const double size = largest(x);
  return size > 0 && size < 1 ? eps * size : eps;
}

template <Real T>
double floor_of(const Tensor<T>& y, const Tensor<double>& w, double h, double tolerance) {
  double scale = 0;
  for (Index o = 0; o < y.size(); ++o)
    scale += std::fabs(w.data()[o] * static_cast<double>(y.data()[o]));
  return Precision<T>::kUnit * scale / h / tolerance;
}

#define HEADWISE_INSTANTIATE(T)                                                                \
  template Difference difference(const Tensor<T>&, std::span<const double>, double, Line<T>&); \
  template Slope slope(const Tensor<T>&, std::span<const double>, double, Line<T>&,            \
                       std::span<double>);                                                     \
  template double floor_of(const Tensor<T>&, const Tensor<double>&, double, double);           \
  template Tensor<T> rounded(const Tensor<double>&);                                           \
  template Tensor<T> along(const Tensor<T>&, double, const Tensor<double>&);                   \
  template double largest(const Tensor<T>&);                                                   \
  template double step_for(const Tensor<T>&, double);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
