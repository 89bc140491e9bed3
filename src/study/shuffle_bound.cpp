#include "headwise/study/shuffle_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace headwise::study {

template <Real T>
ShuffleBound::Cumulants ShuffleBound::of(std::span<const T> weights) {
  Cumulants sums{};
  for (const T weight : weights) {
    double power = std::exp(kFirst * static_cast<double>(weight));
    for (double& sum : sums) {
      sum += power;
      power *= power;  // exp(2 t A)
    }
  }
  for (double& sum : sums) sum = std::log(sum / static_cast<double>(weights.size()));
  return sums;
}

ShuffleBound::Cumulants ShuffleBound::of_right(double probability) {
  Cumulants all{};
  double t = kFirst;
  for (double& k : all) {
    k = std::log1p(probability * std::expm1(t));
    t *= 2;
  }
  return all;
}

void ShuffleBound::add(const Cumulants& query, double draws) {
  for (std::size_t i = 0; i < kSteps; ++i) total_[i] += draws * query[i];
}

double ShuffleBound::p(double sum) const {
  double least = 0, t = kFirst;  // log p
  for (const double k : total_) {
    least = std::min(least, k - t * sum);
    t *= 2;
  }
  return std::max(std::exp(least), 1e-300);
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size(), std::numeric_limits<double>::quiet_NaN());
  double so_far = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double tests_left = static_cast<double>(order.size() - rank);
    so_far = std::max(so_far, std::min(1.0, tests_left * p[order[rank]]));
    corrected[order[rank]] = so_far;
  }
  return corrected;
}

template ShuffleBound::Cumulants ShuffleBound::of(std::span<const float>);
template ShuffleBound::Cumulants ShuffleBound::of(std::span<const double>);

}  // namespace headwise::study
