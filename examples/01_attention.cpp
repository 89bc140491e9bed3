// Attention, line by line: six words, width 8, two heads; every matrix printed, then checked
// against the op. Build and run:   cmake --build build --target 01_attention &&
// build/examples/01_attention
#include <cmath>

#include "headwise/headwise.hpp"

using namespace headwise;

constexpr Index kT = 6, kC = 8, kH = 2, kD = kC / kH;
const char* const kWords[kT] = {"the", "cat", "sat", "on", "the", "mat"};

void print(const char* name, const Tensor<double>& x) {
  fmt::print("\n{} {}\n", name, x.shape());
  for (Index i = 0; i < x.shape().rows(); ++i) {
    fmt::print("  {:5}", x.shape().rows() == kT ? kWords[i] : "");
    for (Index j = 0; j < x.shape().last(); ++j)
      fmt::print(" {:>6.2f}", x.data()[i * x.shape().last() + j]);
    fmt::print("\n");
  }
}

/// f(i,j) in a matrix.
template <class F>
Tensor<double> matrix(Index rows, Index cols, F f) {
  Tensor<double> x = Tensor<double>::zeros({rows, cols});
  for (Index i = 0; i < rows * cols; ++i) x.data()[i] = f(i / cols, i % cols);
  return x;
}

double largest_gap(const Tensor<double>& a, const Tensor<double>& b) {
  double gap = 0;
  for (Index i = 0; i < a.size(); ++i) gap = std::max(gap, std::fabs(a.data()[i] - b.data()[i]));
  return gap;
}

int main(int argc, char** argv) {
  init(argc, argv);
  // The same row for the same word; W_Q, W_K, W_V, W_O as models have them: y = x W^T.
  Rng rng(1);
  const Tensor<double> table = normal_tensor<double>({5, kC}, 1, rng);
  const Var<double> embedded = embedding<double>(table, Ids({1, kT}, {0, 1, 2, 3, 0, 4}));
  BlockConfig config{.width = kC, .heads = kH, .bias = false, .init_std = 0.5, .residual_std = 0.5};
  const MultiHeadAttention<double> attn(config, rng);

  Tape<double> tape;
  const Ctx<double> ctx{.tape = &tape};
  const Var<double> x = embedded;
  const Var<double> q = attn.w_q(ctx, x), k = attn.w_k(ctx, x), v = attn.w_v(ctx, x);
  print("X", x.value());
  print("Q = X W_Q^T", q.value());
  print("K = X W_K^T", k.value());
  print("V = X W_V^T", v.value());

  // By hand, a head at a time: head h owns the columns hD .. hD+D-1.
  Tensor<double> heads = Tensor<double>::zeros({kT, kC});
  double* const joined = heads.data();
  for (Index h = 0; h < kH; ++h) {
    const auto at = [h](const Var<double>& m, Index i, Index d) {
      return m.value().data()[i * kC + h * kD + d];
    };
    const auto scores = matrix(kT, kT, [&](Index i, Index j) {
      double sum = 0;
      for (Index d = 0; d < kD; ++d) sum += at(q, i, d) * at(k, j, d);
      return sum;
    });
    const auto cell = [](const Tensor<double>& m, Index i, Index j) {
      return m.data()[i * kT + j];
    };
    const auto scaled = matrix(
        kT, kT, [&](Index i, Index j) { return cell(scores, i, j) / std::sqrt(double(kD)); });
    const auto masked =
        matrix(kT, kT, [&](Index i, Index j) { return j <= i ? cell(scaled, i, j) : -INFINITY; });
    const auto weights = matrix(kT, kT, [&](Index i, Index j) {
      double sum = 0;
      for (Index l = 0; l < kT; ++l) sum += std::exp(cell(masked, i, l));
      return std::exp(cell(masked, i, j)) / sum;
    });
    const auto head = matrix(kT, kD, [&](Index i, Index d) {
      double sum = 0;
      for (Index j = 0; j < kT; ++j) sum += cell(weights, i, j) * at(v, j, d);
      return joined[i * kC + h * kD + d] = sum;
    });
    print(fmt::format("head {}: scores = Q K^T", h).c_str(), scores);
    print(fmt::format("head {}: scaled by 1/sqrt({})", h, kD).c_str(), scaled);
    print(fmt::format("head {}: masked", h).c_str(), masked);
    print(fmt::format("head {}: weights = softmax", h).c_str(), weights);
    print(fmt::format("head {}: Z = weights V", h).c_str(), head);
  }
  print("heads side by side", heads);

  const Var<double> z = attention(q, k, v, {.heads = kH, .mask = causal()});
  const Var<double> out = attn.w_o(ctx, z);
  print("output = Z W_O^T", out.value());
  tape.backward(mean(out * out));  // L = mean of the squared outputs
  print("dL/dW_Q", attn.w_q.weight.grad);

  const double gap = largest_gap(heads, z.value());
  fmt::print("\nby hand and by the op: largest difference {:.1e}\n", gap);
  return gap < 1e-14 ? 0 : 1;
}
