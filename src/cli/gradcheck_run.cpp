#include "cli/gradcheck_run.hpp"

#include <algorithm>
#include <memory>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "headwise/nn/gradcheck.hpp"

namespace headwise::cli {
namespace {

/// A loss is computed some six times an element: few tokens leave time for many elements.
constexpr Index kTokens = 64;
constexpr Index kSample = 8;  // of each parameter, unless told otherwise

/// The first `time` tokens of each sequence.   ids (B,T).
Ids first_tokens(const Ids& ids, Index time) {
  std::vector<Id> kept;
  for (auto row = ids.values.begin(); row != ids.values.end(); row += ids.shape[1])
    kept.insert(kept.end(), row, row + time);
  return {{ids.shape[0], time}, std::move(kept)};
}

/// About kTokens tokens to validate on: a piece of a text, or whole sequences of a task.
Batch small_batch(const Source& source, Index context, Rng& rng) {
  const Batch batch = source.valid(std::max<Index>(1, kTokens / context), rng);
  if (source.accuracy()) return batch;  // an answer stands at the end
  const Index time = std::min(batch.inputs.shape[1], kTokens);
  return {first_tokens(batch.inputs, time), first_tokens(batch.targets, time)};
}

/// Every second label that counts, drawn anew. Where a model is always right its loss and gradients
/// are differences of much larger numbers, and rounding is all that is left of them.
void surprise(Ids& labels, Index vocab, Rng& rng) {
  bool change = true;
  for (Id& label : labels.values) {
    if (label == kIgnore) continue;
    if (change) label = static_cast<Id>(rng.below(vocab));
    change = !change;
  }
}

/// The model of a run that was trained in precision T, in double.
template <Real T>
Decoder<double> load_in_double(const Run& run) {
  std::vector<std::string> not_finite;
  Decoder<T> model = load_model<T>(run, not_finite);
  warn_not_finite(run, not_finite);
  if constexpr (std::is_same_v<T, double>) {
    return model;
  } else {
    std::vector<Tensor<double>> values;
    for_each_param(model, [&](const std::string&, const Param<T>& p) {
      values.push_back(convert<double>(p.value));
    });
    Rng rng(run.config().seed);
    Decoder<double> precise(model.config, rng);
    auto value = values.begin();
    for_each_param(precise,
                   [&](const std::string&, Param<double>& p) { p.value = std::move(*value++); });
    return precise;
  }
}

}  // namespace

GradCase run_case(const std::string& folder, std::uint64_t seed) {
  const Run run = Run::open(folder);
  const auto model = std::make_shared<Decoder<double>>(
      run.config().dtype == Dtype::f64 ? load_in_double<double>(run) : load_in_double<float>(run));
  const Material material = material_of_run(run, "");
  Rng rng = stream(seed, Purpose::batches);
  Batch batch = small_batch(*material.source, model->config.context, rng);
  surprise(batch.targets, model->config.vocab, rng);
  return {
      "run", folder, [model, batch](GradOptions options) {
        options.heads = model->config.heads;
        if (options.sample == 0 && options.seconds == 0) options.sample = kSample;
        return gradcheck_module(
            *model,
            [&](const Ctx<double>& ctx) { return model->loss(ctx, batch.inputs, batch.targets); },
            {}, options);
      }};
}

}  // namespace headwise::cli
