#include "headwise/train/trainer.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <set>

#include "headwise/core/parse.hpp"
#include "headwise/core/safetensors.hpp"

namespace headwise {
namespace {

/// What a step draws its random numbers for; with the step's number it names a stream.
enum class Purpose : std::uint64_t { batches = 1, dropout = 2 };

Rng stream(std::uint64_t seed, Purpose purpose, Index step) {
  return Rng(seed, static_cast<std::uint64_t>(purpose) << 48 | static_cast<std::uint64_t>(step));
}

/// Seed of the evaluation batches: the same for every run.
constexpr std::uint64_t kEvaluationSeed = 0x6865616477697365;

/// One sequence: the inputs from `begin`, the targets one on.
Batch window(const std::vector<Id>& tokens, Index begin, Index length) {
  const auto from = tokens.begin() + begin;
  return {Ids({1, length}, {from, from + length}), Ids({1, length}, {from + 1, from + 1 + length})};
}

template <Real T>
double loss_of(const Decoder<T>& model, const Batch& batch) {
  const Ctx<T> ctx;
  return static_cast<double>(cross_entropy(model(ctx, batch.inputs), batch.targets).item());
}

/// Numbers kept in a checkpoint's metadata.
class State {
 public:
  explicit State(const TensorFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  template <class Number>
  void read(const std::string& key, Number& x) const {
    const auto found = file_.metadata().find(key);
    require<DataError>(found != file_.metadata().end(), "{}: has no '{}' in its metadata", path_,
                       key);
    const std::optional<Number> number = parse_number<Number>(found->second);
    require<DataError>(number.has_value(), "{}: '{}' in its metadata is no number: '{}'", path_,
                       key, found->second);
    x = *number;
  }

 private:
  const TensorFile& file_;
  std::string path_;
};

/// The tensor of that name and shape, or a DataError that names both shapes.
template <Real T>
Tensor<T> tensor_of(const TensorFile& file, const std::string& path, const std::string& name,
                    const Shape& shape) {
  Tensor<T> x = file.tensor<T>(name);
  require<DataError>(x.shape() == shape, "{}: tensor '{}' has shape {}, the model needs {}", path,
                     name, x.shape(), shape);
  return x;
}

}  // namespace

void TrainOptions::validate() const {
  const auto at_least = [](const char* option, Index n, Index least) {
    require<UsageError>(n >= least, "{}: {} is not {} or more", option, n, least);
  };
  at_least("--batch", batch, 1);
  at_least("--accumulate", accumulate, 1);
  at_least("--steps", steps, 1);
  at_least("--warmup", warmup, 0);
  at_least("--eval-every", eval_every, 1);
  at_least("--eval-batches", eval_batches, 1);
  require<UsageError>(std::isfinite(lr) && lr > 0, "--lr: {} is not above 0", lr);
  require<UsageError>(min_lr >= 0 && min_lr <= lr, "--min-lr: {} is not from 0 to --lr {}", min_lr,
                      lr);
  require<UsageError>(std::isfinite(weight_decay) && weight_decay >= 0,
                      "--weight-decay: {} is not 0 or more", weight_decay);
  require<UsageError>(beta1 >= 0 && beta1 < 1, "--beta1: {} is not in [0, 1)", beta1);
  require<UsageError>(beta2 >= 0 && beta2 < 1, "--beta2: {} is not in [0, 1)", beta2);
  require<UsageError>(std::isfinite(clip) && clip >= 0, "--clip: {} is not 0 or more", clip);
}

double learning_rate(const TrainOptions& o, Index step) {
  const auto s = static_cast<double>(step), warmup = static_cast<double>(o.warmup);
  if (step < o.warmup) return o.lr * (s + 1) / (warmup + 1);
  if (step >= o.steps) return o.min_lr;
  const double way = (s - warmup) / (static_cast<double>(o.steps) - warmup);
  return o.min_lr + 0.5 * (1 + std::cos(std::numbers::pi * way)) * (o.lr - o.min_lr);
}

template <Real T>
Loss evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch, Index batches) {
  Rng rng(kEvaluationSeed);
  Loss loss;
  for (Index i = 0; i < batches; ++i) {
    const Batch b = random_batch(tokens, batch, model.config.context, rng);
    loss.mean += loss_of(model, b);
    loss.tokens += b.targets.shape.size();
  }
  loss.mean /= static_cast<double>(batches);
  return loss;
}

template <Real T>
Loss evaluate_all(const Decoder<T>& model, const std::vector<Id>& tokens) {
  const Index predicted = static_cast<Index>(tokens.size()) - 1;
  require<DataError>(predicted >= 1, "text: {} tokens, need at least 2 to predict one",
                     tokens.size());
  double total = 0;
  for (Index at = 0; at < predicted; at += model.config.context) {
    const Index length = std::min(model.config.context, predicted - at);
    total += loss_of(model, window(tokens, at, length)) * static_cast<double>(length);
  }
  return {total / static_cast<double>(predicted), predicted};
}

template <Real T>
Trainer<T>::Trainer(Decoder<T>& model, const TrainOptions& options, const Split& text,
                    std::uint64_t seed)
    : model_(model),
      options_(options),
      text_(text),
      seed_(seed),
      adam_(
          {.weight_decay = options.weight_decay, .beta1 = options.beta1, .beta2 = options.beta2}) {
  options.validate();
}

template <Real T>
StepRecord Trainer<T>::step() {
  Rng batches = stream(seed_, Purpose::batches, steps_done_);
  Rng dropout = stream(seed_, Purpose::dropout, steps_done_);
  StepRecord record{.step = steps_done_ + 1, .lr = learning_rate(options_, steps_done_)};

  std::vector<Batch> micro;
  Index total = 0;
  for (Index i = 0; i < options_.accumulate; ++i) {
    micro.push_back(random_batch(text_.train, options_.batch, model_.config.context, batches));
    total += counted(micro.back().targets);
  }
  zero_grad(model_);
  for (const Batch& b : micro) {
    Tape<T> tape;
    const Ctx<T> ctx{.tape = &tape, .random = &dropout};
    const Var<T> loss = cross_entropy(model_(ctx, b.inputs), b.targets);
    require<Error>(std::isfinite(loss.item()), "step {}: the loss is {} at learning rate {}",
                   record.step, loss.item(), record.lr);
    const double share = static_cast<double>(counted(b.targets)) / static_cast<double>(total);
    record.loss += share * static_cast<double>(loss.item());
    tape.backward(loss, static_cast<T>(share));  // the mean is over tokens, not over batches
  }
  const std::vector<std::string> missed = without_gradient(model_);
  require<Error>(missed.empty(), "step {}: no gradient reached {}", record.step,
                 fmt::join(missed, ", "));
  try {
    record.grad_norm = gradient_norm(model_);
  } catch (const Error& e) {
    throw Error(fmt::format("step {}, learning rate {}: {}", record.step, record.lr, e.what()));
  }
  adam_.step(model_, record.lr, clip_factor(record.grad_norm, options_.clip));
  zero_grad(model_);

  steps_done_ = record.step;
  lr_ = record.lr;
  loss_sum_ += record.loss;
  ++loss_count_;
  return record;
}

template <Real T>
EvalRecord Trainer<T>::evaluate() {
  val_loss_ = headwise::evaluate(model_, text_.valid, options_.batch, options_.eval_batches).mean;
  require<Error>(std::isfinite(val_loss_), "step {}: the validation loss is {} at learning rate {}",
                 steps_done_, val_loss_, lr_);
  EvalRecord record{.step = steps_done_,
                    .train_loss = loss_sum_ / static_cast<double>(std::max<Index>(1, loss_count_)),
                    .val_loss = val_loss_,
                    .lr = lr_,
                    .best = val_loss_ < best_val_loss_};
  best_val_loss_ = std::min(best_val_loss_, val_loss_);
  loss_sum_ = 0;
  loss_count_ = 0;
  return record;
}

template <Real T>
void Trainer<T>::save(const std::string& path) const {
  TensorFileWriter file;
  for_each_param(model_, [&](const std::string& name, const Param<T>& p) {
    file.add("weight/" + name, p.value);
  });
  for (const auto& [name, m] : adam_.moments) {
    file.add("mean/" + name, m.mean);
    file.add("square/" + name, m.square);
    file.metadata("updates/" + name, fmt::to_string(m.updates));
  }
  file.metadata("seed", fmt::to_string(seed_));
  file.metadata("steps", fmt::to_string(steps_done_));
  file.metadata("lr", fmt::to_string(lr_));
  file.metadata("loss_sum", fmt::to_string(loss_sum_));
  file.metadata("loss_count", fmt::to_string(loss_count_));
  file.metadata("val_loss", fmt::to_string(val_loss_));
  file.metadata("best_val_loss", fmt::to_string(best_val_loss_));
  file.save(path);
}

template <Real T>
void Trainer<T>::load(const std::string& path) {
  const TensorFile file(path);
  const State state(file, path);
  for_each_param(model_, [&](const std::string& name, Param<T>& p) {
    const Shape shape = p.value.shape();
    p.value = tensor_of<T>(file, path, "weight/" + name, shape);
    if (!file.has("mean/" + name)) return;
    Moments<T>& m = adam_.moments[name];
    m.mean = tensor_of<T>(file, path, "mean/" + name, shape);
    m.square = tensor_of<T>(file, path, "square/" + name, shape);
    state.read("updates/" + name, m.updates);
  });
  state.read("seed", seed_);
  state.read("steps", steps_done_);
  state.read("lr", lr_);
  state.read("loss_sum", loss_sum_);
  state.read("loss_count", loss_count_);
  state.read("val_loss", val_loss_);
  state.read("best_val_loss", best_val_loss_);
}

template <Real T>
void save_weights(Decoder<T>& model, const std::string& path) {
  TensorFileWriter file;
  for_each_param(model,
                 [&](const std::string& name, const Param<T>& p) { file.add(name, p.value); });
  if (model.config.tie) file.metadata("tied", "head.weight = tok.weight");
  file.save(path);
}

template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const std::string& path) {
  const TensorFile file(path);
  std::set<std::string> unknown;
  for (const auto& [name, entry] : file.entries()) unknown.insert(name);
  std::vector<std::string> not_finite;
  for_each_param(model, [&](const std::string& name, Param<T>& p) {
    unknown.erase(name);
    Tensor<T> x = tensor_of<T>(file, path, name, p.value.shape());
    if (!std::isfinite(squared_norm(x))) not_finite.push_back(name);
    p.value = std::move(x);
  });
  require<DataError>(unknown.empty(), "{}: has tensors that the model does not: {}", path,
                     fmt::join(unknown, ", "));
  return not_finite;
}

#define HEADWISE_INSTANTIATE(T)                                                    \
  template class Trainer<T>;                                                       \
  template Loss evaluate(const Decoder<T>&, const std::vector<Id>&, Index, Index); \
  template Loss evaluate_all(const Decoder<T>&, const std::vector<Id>&);           \
  template void save_weights(Decoder<T>&, const std::string&);                     \
  template std::vector<std::string> load_weights(Decoder<T>&, const std::string&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
