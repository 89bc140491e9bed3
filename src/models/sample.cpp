#include "headwise/models/sample.hpp"

#include <algorithm>

namespace headwise {

template <Real T>
std::vector<Id> sample(const Decoder<T>& model, std::vector<Id> prompt, Index count,
                       const Drawing& drawing, Rng& rng, const std::function<bool(Id)>& each) {
  require<UsageError>(!prompt.empty(), "sample: the prompt is empty");
  Drawer drawer(drawing);
  const std::size_t start = prompt.size();
  const Ctx<T> ctx;
  for (Index i = 0; i < count; ++i) {
    const Index seen = std::min<Index>(static_cast<Index>(prompt.size()), model.config.context);
    const Var<T> logits = model(ctx, Ids({1, seen}, {prompt.end() - seen, prompt.end()}));
    const auto v = static_cast<std::size_t>(model.config.vocab);
    prompt.push_back(drawer.draw(logits.value().values().last(v), rng));
    if (each && !each(prompt.back())) break;
  }
  return {prompt.begin() + static_cast<std::ptrdiff_t>(start), prompt.end()};
}

#define HEADWISE_INSTANTIATE(T)                                                                    \
  template std::vector<Id> sample(const Decoder<T>&, std::vector<Id>, Index, const Drawing&, Rng&, \
                                  const std::function<bool(Id)>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
