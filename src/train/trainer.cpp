#include "headwise/train/trainer.hpp"

#include <cmath>
#include <optional>

#include "headwise/core/parse.hpp"
#include "headwise/train/weights.hpp"

namespace headwise {
namespace {

/// What a step draws its random numbers for; with the step's number it names a stream.
enum class Purpose : std::uint64_t { batches = 1, dropout = 2 };

Rng stream(std::uint64_t seed, Purpose purpose, Index step) {
  return Rng(seed, static_cast<std::uint64_t>(purpose) << 48 | static_cast<std::uint64_t>(step));
}

/// Numbers kept in a checkpoint's metadata.
class State {
 public:
  explicit State(const TensorFile& file) : file_(file) {}

  template <class Number>
  void read(const std::string& key, Number& x) const {
    const auto found = file_.metadata().find(key);
    require<DataError>(found != file_.metadata().end(), "{}: has no '{}' in its metadata",
                       file_.path(), key);
    const std::optional<Number> number = parse_number<Number>(found->second);
    require<DataError>(number.has_value(), "{}: '{}' in its metadata is no number: '{}'",
                       file_.path(), key, found->second);
    x = *number;
  }

 private:
  const TensorFile& file_;
};

}  // namespace

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
  const State state(file);
  for_each_param(model_, [&](const std::string& name, Param<T>& p) {
    const Shape shape = p.value.shape();
    p.value = tensor_of<T>(file, "weight/" + name, shape);
    if (!file.has("mean/" + name)) return;
    Moments<T>& m = adam_.moments[name];
    m.mean = tensor_of<T>(file, "mean/" + name, shape);
    m.square = tensor_of<T>(file, "square/" + name, shape);
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

template class Trainer<float>;
template class Trainer<double>;

}  // namespace headwise
