#include "headwise/train/trainer.hpp"

#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <type_traits>

#include "headwise/core/parallel.hpp"
#include "headwise/core/parse.hpp"
#include "headwise/core/printable.hpp"
#include "headwise/nn/freeze.hpp"
#include "headwise/nn/non_finite.hpp"
#include "headwise/train/weights.hpp"

namespace headwise {
namespace {

/// Random numbers set aside for the dropout of one group.
constexpr std::uint64_t kDrawsOfGroup = std::uint64_t{1} << 40;

/// Into how many groups a batch is cut that each run the whole step on one thread: no thread waits
/// at the end of each op, and what a group computes stays near its core. For small models and
/// batches, whose step is too short to share it op by op among more than a few cores. A power of
/// two suits the usual numbers of cores. A group's widest tensors (the MLP's, and the pattern kept
/// for the backward) stay below 1 MiB, so that how groups happen to overlap never takes memory
/// anew. Follows from the model and the batch alone, as the bits do.
template <Real T>
Index groups_of(const ModelConfig& c, Index batch) {
  constexpr Index kWidth = 128, kVocab = 4 * kWidth, kLeastRows = 192, kMostRows = 2 * kLeastRows;
  if (c.width > kWidth || c.vocab > kVocab) return 1;
  Index groups = 1;
  while (2 * groups <= batch && batch * c.context >= 2 * groups * kLeastRows) groups *= 2;
  const Index rows = (batch + groups - 1) / groups * c.context;
  const Index widest = std::max(4 * c.width, c.heads * c.context);
  const bool small = rows * widest * static_cast<Index>(sizeof(T)) <= 1 << 20;
  return groups <= 8 && rows <= kMostRows && small ? groups : 1;
}

/// What the mean loss of a batch is multiplied by: the step's mean is over tokens, not batches.
double share_of(const Batch& batch, Index total) {
  return static_cast<double>(counted(batch.targets)) / static_cast<double>(total);
}

/// Numbers kept in a checkpoint's metadata.
class Metadata {
 public:
  explicit Metadata(const TensorFile& file) : file_(file) {}

  template <class Number>
  void read(const std::string& key, Number& x) const {
    const auto found = file_.metadata().find(key);
    require<DataError>(found != file_.metadata().end(), "{}: has no '{}' in its metadata",
                       printable_path(file_.path()), key);
    const std::optional<Number> number = parse_number<Number>(found->second);
    require<DataError>(number.has_value(), "{}: '{}' in its metadata is no number: '{}'",
                       printable_path(file_.path()), key, printable(found->second));
    require<DataError>(!std::is_integral_v<Number> || *number >= 0,
                       "{}: '{}' in its metadata is negative: {}", printable_path(file_.path()),
                       key, *number);
    x = *number;
  }

 private:
  const TensorFile& file_;
};

}  // namespace

template <Real T>
Trainer<T>::Trainer(Decoder<T>& model, const TrainOptions& options, const Source& source,
                    std::uint64_t seed)
    : model_(model),
      options_(options),
      source_(source),
      adam_(
          {.weight_decay = options.weight_decay, .beta1 = options.beta1, .beta2 = options.beta2}) {
  options.validate();
  require<ParameterError>(std::isfinite(static_cast<T>(options.lr)),
                          "lr: must be finite in this precision, got {}", options.lr);
  freeze(model_, options.freeze);
  state_.seed = seed;
  for_each_param(model_, [&](const std::string&, const Param<T>& p) {
    if (p.trainable) parameters_ += p.value.size();
  });
}

template <Real T>
double Trainer<T>::add_gradients(const std::vector<Batch>& groups, Index total, Rng& dropout) {
  struct Work {
    Work(const Rng& numbers, Profile* to) : dropout(numbers), tape(to == nullptr ? to : &profile) {}
    Rng dropout;
    Profile profile;
    Tape<T> tape;
    double loss = 0;
  };
  std::deque<Work> works;
  for (std::size_t i = 0; i < groups.size(); ++i)
    works.emplace_back(dropout.reserve(kDrawsOfGroup), profile_);
  const auto count = static_cast<Index>(groups.size());
  parallel_for(count, 1, [&](Index i, Index) {  // one group alone runs its ops in parallel
    const Batch& b = groups[static_cast<std::size_t>(i)];
    Work& w = works[static_cast<std::size_t>(i)];
    const Ctx<T> ctx{.tape = &w.tape, .random = &w.dropout};
    const Var<T> loss = model_.loss(ctx, b.inputs, b.targets);
    const double share = share_of(b, total);
    w.loss = share * static_cast<double>(loss.item());
    if (std::isfinite(w.loss)) w.tape.propagate(loss, static_cast<T>(share));
  });
  for (const Work& w : works)
    if (!std::isfinite(w.loss)) return w.loss;
  double sum = 0;
  std::vector<Tape<T>*> tapes;
  for (Work& w : works) {
    tapes.push_back(&w.tape);
    sum += w.loss;
    if (profile_ != nullptr)
      profile_->merge(w.profile, 1 / static_cast<double>(std::min<Index>(count, threads())));
  }
  Tape<T>::deliver(tapes);
  return sum;
}

template <Real T>
void Trainer<T>::fail(const StepRecord& record, const std::string& what,
                      const std::vector<std::vector<Batch>>& batches, Index total) {
  zero_grad(model_);
  std::string origin = "no pass by itself shows it: it arose where their gradients were added up";
  Rng dropout = stream(state_.seed, Purpose::dropout, state_.steps);  // as in the step
  try {
    std::optional<NonFinite> found;
    for (const std::vector<Batch>& groups : batches)
      for (const Batch& b : groups) {
        const Rng draws = dropout.reserve(kDrawsOfGroup);
        if (found) continue;
        found = first_non_finite<T>(
            model_, [&](const Ctx<T>& ctx) { return model_.loss(ctx, b.inputs, b.targets); }, draws,
            static_cast<T>(share_of(b, total)));
      }
    if (found) origin = found->describe();
  } catch (const std::exception& e) {  // out of memory, say: the tape that looks keeps all values
    origin = fmt::format("where it arose could not be found: {}", e.what());
  }
  throw NotFinite(
      fmt::format("step {}, learning rate {}: {}; {}", record.step, record.lr, what, origin));
}

template <Real T>
StepRecord Trainer<T>::step() {
  auto last = std::chrono::steady_clock::now();
  const auto phase = [&](std::string_view name, double bytes_a_parameter) {
    if (profile_ == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(last, now)).count();
    profile_->forward(name, {.calls = 1,
                             .seconds = seconds,
                             .bytes = bytes_a_parameter * static_cast<double>(parameters_)});
  };
  Rng places = stream(state_.seed, Purpose::batches, state_.steps);
  Rng dropout = stream(state_.seed, Purpose::dropout, state_.steps);
  StepRecord record{.step = state_.steps + 1, .lr = learning_rate(options_, state_.steps)};

  const Index count = groups_of<T>(model_.config, options_.batch);
  std::vector<std::vector<Batch>> batches(static_cast<std::size_t>(options_.accumulate));
  Index total = 0;
  for (std::vector<Batch>& groups : batches)
    for (Index i = 0; i < count; ++i) {
      const Index sequences = (i + 1) * options_.batch / count - i * options_.batch / count;
      groups.push_back(source_.train(sequences, places));
      record.tokens += groups.back().inputs.shape.size();
      total += counted(groups.back().targets);
    }
  require<Error>(total > 0, "step {}: none of its {} labels counts (each is {}), so it has no loss",
                 record.step, record.tokens, kIgnore);
  zero_grad(model_);
  phase("draw the batch", 0);
  for (const std::vector<Batch>& groups : batches) {
    record.loss += add_gradients(groups, total, dropout);
    if (!std::isfinite(record.loss))
      fail(record, fmt::format("the loss is {}", record.loss), batches, total);
  }
  last = std::chrono::steady_clock::now();  // the ops measure themselves
  const std::vector<std::string> missed = without_gradient(model_);
  require<Error>(missed.empty(), "step {}: no gradient reached {}", record.step,
                 fmt::join(missed, ", "));
  try {
    record.grad_norm = gradient_norm(model_);
  } catch (const NotFinite& e) {
    fail(record, e.what(), batches, total);
  }
  phase("norm of the gradient", sizeof(T));
  try {
    adam_.step(model_, record.lr, clip_factor(record.grad_norm, options_.clip));
  } catch (const NotFinite& e) {
    throw NotFinite(fmt::format("step {}: {}", record.step, e.what()));
  }
  zero_grad(model_);
  phase("AdamW", 7 * sizeof(T));  // reads gradient, moments and value, writes the last three

  state_.steps = record.step;
  state_.lr = record.lr;
  state_.loss_sum += record.loss;
  ++state_.loss_count;
  return record;
}

template <Real T>
std::optional<EvalRecord> Trainer<T>::evaluate(FunctionRef<bool()> keep_going) {
  std::optional<Loss> loss;
  try {
    loss = headwise::evaluate(model_, source_, options_.batch, options_.eval_batches, keep_going);
  } catch (const NotFinite& e) {
    throw NotFinite(
        fmt::format("step {}, learning rate {}: {}", state_.steps, state_.lr, e.what()));
  }
  if (!loss) return std::nullopt;
  state_.val_loss = loss->mean;
  state_.evaluated = state_.steps;
  EvalRecord record{
      .step = state_.steps,
      .train_loss = state_.loss_sum / static_cast<double>(std::max<Index>(1, state_.loss_count)),
      .val_loss = state_.val_loss,
      .val_accuracy = loss->accuracy,
      .val_right = loss->right,
      .val_answers = loss->answers,
      .val_each_once = loss->each_once,
      .lr = state_.lr,
      .best = state_.val_loss < state_.best_val_loss};
  state_.best_val_loss = std::min(state_.best_val_loss, state_.val_loss);
  state_.loss_sum = 0;
  state_.loss_count = 0;
  return record;
}

template <Real T>
void Trainer<T>::save(TensorFileWriter& file) const {
  const auto add = [&](const std::string& name, const Tensor<T>& x) {
    require<NotFinite>(all_finite(x), "step {}: '{}' is not finite after learning rate {}",
                       state_.steps, name, state_.lr);
    file.add(name, x);
  };
  for_each_param(
      model_, [&](const std::string& name, const Param<T>& p) { add("weight/" + name, p.value); });
  for_each_param(model_, [&](const std::string& name, const Param<T>& p) {
    const Moments<T>* m = adam_.find(p);
    if (m == nullptr) return;
    add("mean/" + name, m->mean);
    add("square/" + name, m->square);
    file.metadata("updates/" + name, fmt::to_string(m->updates));
  });
  State state = state_;
  state.visit([&](const char* key, auto& x) { file.metadata(key, fmt::to_string(x)); });
}

template <Real T>
void Trainer<T>::save(const std::string& path) const {
  TensorFileWriter file;
  save(file);
  file.save(path);
}

template <Real T>
void Trainer<T>::load(const TensorFile& file) {
  // Everything is checked before anything is replaced. Then one tensor after the other is, so that
  // never more than one is there twice.
  const Metadata metadata(file);
  std::set<std::string> names;
  const auto expect = [&](const std::string& name, const Shape& shape) {
    names.insert(name);
    require_tensor(file, name, shape);
    require<DataError>(file.entry(name).dtype == (sizeof(T) == 4 ? "F32" : "F64"),
                       "{}: tensor '{}' is {}, and the run is {}", printable_path(file.path()),
                       printable(name), file.entry(name).dtype, sizeof(T) == 4 ? "f32" : "f64");
  };
  std::map<std::string, Moments<T>> moments;
  for_each_param(model_, [&](const std::string& name, const Param<T>& p) {
    expect("weight/" + name, p.value.shape());
    if (!file.metadata().contains("updates/" + name) && !file.has("mean/" + name)) return;
    metadata.read("updates/" + name, moments[name].updates);
    expect("mean/" + name, p.value.shape());
    expect("square/" + name, p.value.shape());
  });
  require_only(file, names);
  State state;
  state.visit([&](const char* key, auto& x) { metadata.read(key, x); });
  file.verify();

  adam_.clear();
  for_each_param(model_, [&](const std::string& name, Param<T>& p) {
    p.value = file.tensor<T>("weight/" + name);
    const auto m = moments.find(name);
    if (m == moments.end()) return;
    m->second.mean = file.tensor<T>("mean/" + name);
    m->second.square = file.tensor<T>("square/" + name);
    adam_.set(name, p, std::move(m->second));
  });
  state_ = state;
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace headwise
