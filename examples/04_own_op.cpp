// An op of one's own, outside the library: softplus, log(1 + e^x), with its derivative; proved, and
// a planted mistake found and explained. Build and run:
//   cmake --build build --target 04_own_op && build/examples/04_own_op
#include <cmath>

#include "headwise/headwise.hpp"

using namespace headwise;

/// f of each element.
template <Real T, class F>
Tensor<T> map(const Tensor<T>& x, F f) {
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  std::transform(x.values().begin(), x.values().end(), y.data(), f);
  return y;
}

/// log(1 + e^x), element by element. What the lambda captures is kept for the backward.
template <Real T>
Var<T> softplus(const Var<T>& x) {
  // Large x would overflow e^x: max(x, 0) + log(1 + e^-|x|) is the same and cannot.
  const auto value = [](T v) { return std::max(v, T(0)) + std::log1p(std::exp(-std::fabs(v))); };
  const auto slope = [](T v) { return 1 / (1 + std::exp(-v)); };
  return record("softplus", map(x.value(), value), {x},
                [slope = map(x.value(), slope)](const Tensor<T>& dy, Grads<T>& d) {
                  Tensor<T>& dx = *d[0];  // of one input, which somebody wants: else no backward
                  T* const to = dx.data();
                  for (Index i = 0; i < dx.size(); ++i) to[i] += dy.data()[i] * slope.data()[i];
                });
}

/// The same with a mistake: rows beyond the first get no gradient, as from a loop that ends too
/// soon.
Var<double> mistaken(const Var<double>& x) {
  const Tensor<double> y = softplus(Var<double>(x.value())).value();
  return record("mistaken", y, {x}, [x = x.value()](const Tensor<double>& dy, Grads<double>& d) {
    double* const to = d[0]->data();
    for (Index i = 0; i + x.shape().last() < x.size(); ++i)
      to[i] += dy.data()[i] / (1 + std::exp(-x.data()[i]));
  });
}

bool proved(const char* name, const Function<double>& f, std::vector<Tensor<double>> inputs) {
  const GradReport r = gradcheck(f, std::move(inputs));
  fmt::print("{}: {}, {} elements, worst error {:.1e}\n", name, name_of(r.verdict), r.elements,
             r.worst);
  if (r.verdict != Verdict::pass) fmt::print("\n{}", describe(r));
  return r.verdict == Verdict::pass;
}

int main(int argc, char** argv) {
  init(argc, argv);
  Rng rng(1);
  const auto x = normal_tensor<double>({4, 3}, 2, rng), w = normal_tensor<double>({2, 3}, 1, rng);
  const bool good = proved("softplus", [](const auto& in) { return softplus(in[0]); }, {x});
  // Among the library's ops it is one like them: a layer, with the gradients of x and w.
  const bool layer =
      proved("layer", [](const auto& in) { return linear(softplus(in[0]), in[1]); }, {x, w});
  // In a layer the report says which op it was, which rows, and what kind of mistake.
  const bool caught =
      !proved("mistaken layer", [](const auto& in) { return tanh(linear(mistaken(in[0]), in[1])); },
              {x, w});
  return good && layer && caught ? 0 : 1;
}
