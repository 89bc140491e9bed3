#include "headwise/core/random.hpp"

#include <cmath>
#include <numeric>

#include "headwise/core/error.hpp"

// Everything here is whole-number arithmetic or + - * / sqrt in double, which IEEE 754 defines to
// the bit; the C library's log is not, so it is not used. (The build forbids fused contractions.)
namespace headwise {
namespace {

/// Natural logarithm of x > 0 to about 1e-16: x = m 2^e, log m = 2 atanh((m-1)/(m+1)) as a series.
double portable_log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752440) m *= 2, --e;
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + e * 0.69314718055994530942;
}

template <std::size_t N>
double polynomial(const double (&c)[N], double x) {
  double y = 0;
  for (std::size_t i = N; i-- > 0;) y = y * x + c[i];
  return y;
}

/// Inverse of the standard normal distribution: Wichura 1988, Applied Statistics 37, algorithm
/// AS 241, routine PPND16.   0 < p < 1.
double inverse_normal(double p) {
  static constexpr double a[] = {
      3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
      45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727};
  static constexpr double b[] = {1.0,
                                 42.313330701600911252,
                                 687.18700749205790830,
                                 5394.1960214247511077,
                                 21213.794301586595867,
                                 39307.895800092710610,
                                 28729.085735721942674,
                                 5226.4952788528545610};
  static constexpr double c[] = {1.42343711074968357734,    4.63033784615654529590,
                                 5.76949722146069140550,    3.64784832476320460504,
                                 1.27045825245236838258,    2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[] = {1.0,
                                 2.05319162663775882187,
                                 1.67638483018380384940,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double e[] = {6.65790464350110377720,    5.46378491116411436990,
                                 1.78482653991729133580,    2.96560571828504891230e-1,
                                 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  if (r <= 5) {
    r -= 1.6;
    r = polynomial(c, r) / polynomial(d, r);
  } else {
    r -= 5;
    r = polynomial(e, r) / polynomial(f, r);
  }
  return q < 0 ? -r : r;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::array<std::uint32_t, 4> Rng::four(std::uint64_t block) const {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return philox({low(block), low(block >> 32), low(stream_), low(stream_ >> 32)},
                {low(seed_), low(seed_ >> 32)});
}

std::uint32_t Rng::bits() {
  if (position_ / 4 != block_) words_ = four(block_ = position_ / 4);
  return words_[position_++ % 4];
}

Rng Rng::reserve(std::uint64_t n) {
  position_ = (position_ + 3) / 4 * 4;
  const Rng first = *this;
  position_ += n;
  return first;
}

double Rng::normal() {
  const std::uint64_t high = bits(), low = bits();
  const std::uint64_t r = (high << 32 | low) >> 12;  // 52 bits
  return inverse_normal((static_cast<double>(r) + 0.5) * 0x1p-52);
}

Index Rng::below(Index n) {
  require(n >= 1 && n <= 0xFFFFFFFF, "random: below({}) is not from 1 to 2^32 - 1", n);
  const auto count = static_cast<std::uint64_t>(n);
  const std::uint64_t unfair = (std::uint64_t{1} << 32) % count;  // Lemire 2019, arXiv:1805.10941
  std::uint64_t product = 0;
  do product = count * bits();
  while (static_cast<std::uint32_t>(product) < unfair);
  return static_cast<Index>(product >> 32);
}

std::vector<Index> Rng::permutation(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index i = n; i > 1; --i)
    std::swap(order[static_cast<std::size_t>(i - 1)], order[static_cast<std::size_t>(below(i))]);
  return order;
}

template <Real T>
Tensor<T> normal_tensor(const Shape& shape, double std, Rng& rng) {
  Tensor<T> x = Tensor<T>::uninitialized(shape);
  T* out = x.data();
  for (Index i = 0; i < x.size(); ++i) out[i] = static_cast<T>(std * rng.normal());
  return x;
}

template Tensor<float> normal_tensor(const Shape&, double, Rng&);
template Tensor<double> normal_tensor(const Shape&, double, Rng&);

}  // namespace headwise
